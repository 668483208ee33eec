"""The truth of edges: by its formula, with and without logarithm, for every backbone."""

import math

import numpy as np
import pytest
import torch

from lmpnn_kge import backbone_class, open_backbone
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.truth import ALMOST_CERTAIN, EdgeTruth, Weights

from ..conftest import TOY
from ..toy_runs import CHECKPOINTS

E, R = 30, 3
KNOWN = np.array([(0, 0, 1), (0, 0, 2), (0, 0, 3), (4, 1, 4), (5, 2, 6)])


def make(certain=True, weights=None, triples=KNOWN) -> EdgeTruth:
    backbone = backbone_class("complex").random(E, R, 8)
    facts = Facts.of(triples, E, R)
    weights = weights or Weights.uniform(0.5, -1.0, R)
    return EdgeTruth(backbone, facts, weights, certain)


def every_row():
    heads, relations = torch.cartesian_prod(torch.arange(E), torch.arange(2 * R)).T
    return heads, relations


def random_weights(seed=0) -> Weights:
    random = torch.Generator().manual_seed(seed)
    return Weights(torch.tensor(0.7), torch.randn(2 * R, 4, generator=random))


def test_an_edge_has_the_truth_of_the_formula():
    truth = make(certain=False, weights=random_weights())
    heads, relations = every_row()
    rows = truth.rows(heads, relations).exp()
    known = {(h, r, t) for h, r, t in KNOWN.tolist()}
    known |= {(t, r + R, h) for h, r, t in known}
    for row in range(0, len(heads), 11):
        head, relation = int(heads[row]), int(relations[row])
        a, b, c, p = truth.weights.relations[relation].tolist()
        shares = (0.7 * truth.backbone.score_tails([head], [relation])[0]).log_softmax(0)
        fan = sum((head, relation, tail) in known for tail in range(E))
        for tail in range(0, E, 5):
            popular = sum((other, relation, tail) in known for other in range(E))
            logit = a * float(shares[tail]) + b + c * math.log(max(1, fan))
            logit = min(logit + p * math.log1p(popular), ALMOST_CERTAIN)
            assert float(rows[row, tail]) == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-4)


@pytest.mark.parametrize("certain", [True, False])
def test_known_edges_are_true_only_if_facts_are_known(certain):
    truth = make(certain)
    heads, relations, tails = torch.from_numpy(KNOWN).T
    for here, there, ends in ((heads, relations, tails), (tails, relations + R, heads)):
        found = truth.rows(here, there)[torch.arange(len(here)), ends]
        assert (found == 0).all() == certain
        assert (found < -1e-3).all() == (not certain)


@pytest.mark.parametrize("weights", [None, random_weights()], ids=["uniform", "learnt"])
@pytest.mark.parametrize("certain", [True, False])
def test_chances_are_the_truths_without_logarithm(certain, weights):
    truth, (heads, relations) = make(certain, weights), every_row()
    rows, chances = truth.rows(heads, relations), truth.chances(heads, relations)
    assert torch.allclose(rows.exp(), chances, atol=1e-6)


def test_rows_of_repeated_heads_are_the_same():
    truth, (heads, relations) = make(), every_row()
    rows = truth.rows(heads, relations)
    repeated = truth.rows(heads.repeat(3), relations.repeat(3))
    assert torch.allclose(repeated, rows.repeat(3, 1), atol=1e-6)


def test_an_edge_that_is_not_known_is_never_certain():
    high = Weights.uniform(1.0, 50.0, R)
    known, ignored = make(True, high), make(False, high)
    edges = [(h, r, t) for h, r, t in KNOWN.tolist()]
    for head, relation, tail in edges:
        ends = torch.tensor([head]), torch.tensor([relation])
        assert known.chances(*ends)[0, tail] == 1
        assert ignored.chances(*ends).max() < 0.9999
        assert known.rows(*ends)[0].topk(5).values[-1] < -1e-5  # at most three are known


def test_without_known_edges_every_edge_is_uncertain():
    truth = make(triples=KNOWN[:0])
    assert truth.rows(*every_row()).max() < 0


def test_the_weights_move_with_a_device():
    moved = random_weights().to(torch.device("meta"))
    assert moved.beta.device.type == moved.relations.device.type == "meta"


WITH_BOTH_DIRECTIONS = [p for p in CHECKPOINTS.glob("*.package.pt") if "plain" not in p.stem]


@pytest.mark.parametrize("path", sorted(WITH_BOTH_DIRECTIONS), ids=lambda path: path.stem)
def test_every_backbone_has_truths(path):
    backbone = open_backbone(path, dataset=TOY / "dataset")
    graph = KnowledgeGraph.open(TOY / "dataset")
    triples = graph.vocabulary.rows_in(backbone.vocabulary).of(graph.triples("train"))
    facts = Facts.of(triples, backbone.num_entities, backbone.num_relations)
    weights = Weights.uniform(1.0, -1.0, backbone.num_relations)
    truth = EdgeTruth(backbone, facts, weights, certain=False)
    heads, relations, _ = torch.from_numpy(triples).T
    rows = truth.rows(heads, relations)
    assert torch.isfinite(rows).all()
    assert (rows < 0).all()
    # The best score has the greatest truth, also if the score is a distance.
    best = backbone.score_tails(heads, relations).argmax(1, keepdim=True)
    assert torch.allclose(rows.gather(1, best)[:, 0], rows.amax(1))
