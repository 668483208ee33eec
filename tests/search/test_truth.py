"""The truth of edges: by its formula, the same by row and among the best tails, and kept."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from lmpnn_kge import backbone_class, open_backbone
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.truth import EdgeTruth, RowCache, Weights

from ..conftest import TOY
from ..toy_runs import CHECKPOINTS

E, R, T = 30, 3, 7
KNOWN = np.array([(0, 0, 1), (0, 0, 2), (0, 0, 3), (4, 1, 4), (5, 2, 6)])
CPU = torch.device("cpu")


def make(certain=True, weights=None, triples=KNOWN, kept=T) -> EdgeTruth:
    backbone = backbone_class("complex").random(E, R, 8)
    facts = Facts.of(triples, E, R)
    weights = weights or Weights.uniform(0.5, -1.0, R)
    return EdgeTruth.of(backbone, facts, weights, certain=certain, kept=kept)


def every_row():
    heads, relations = torch.cartesian_prod(torch.arange(E), torch.arange(2 * R)).T
    return heads, relations


def random_weights(seed=0) -> Weights:
    random = torch.Generator().manual_seed(seed)
    return Weights(torch.tensor(0.7), torch.randn(2 * R, 4, generator=random))


def assert_same(found, expected):
    """The same tails with the same truths, in any order."""
    (tails, order), (expected_tails, expected_order) = found[0].sort(), expected[0].sort()
    assert torch.equal(tails, expected_tails)
    truths, expected_truths = found[1].gather(1, order), expected[1].gather(1, expected_order)
    assert torch.allclose(truths, expected_truths, atol=1e-6)


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
            logit += p * math.log1p(popular)
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
def test_the_best_tails_are_the_truest_of_a_row(certain, weights):
    truth = make(certain, weights)
    heads, relations = every_row()
    rows = truth.rows(heads, relations).exp()
    if certain:
        keys = truth.facts.keys_of(heads, relations)
        rows[truth.facts.tails_of(keys)] = 0
    tails, values = truth.best(heads, relations)
    assert tails.shape == values.shape == (len(heads), T)
    assert torch.allclose(rows.gather(1, tails.long()), values, atol=1e-6)
    assert torch.allclose(rows.topk(T).values, values.sort(descending=True).values, atol=1e-6)


def test_rows_are_found_again_and_are_the_same_when_the_cache_starts_again():
    truth, heads_and_relations = make(), every_row()
    expected = truth.best(*heads_and_relations)
    few = replace(truth, cache=RowCache(T, 20, CPU))
    order = torch.randperm(len(expected[0]), generator=torch.Generator().manual_seed(1))
    for rows in (*order.split(7), order[:3], order[:3].repeat(4), order):
        tails, values = few.best(*(ids[rows] for ids in heads_and_relations))
        assert_same((tails, values), (expected[0][rows], expected[1][rows]))
        if len(rows) < 20:
            assert len(few.cache.keys) <= 20


def test_a_row_is_computed_once(monkeypatch):
    truth, (heads, relations) = make(), every_row()
    truth.best(heads[:50], relations[:50])
    computed = []
    logits = EdgeTruth._logits

    def counting(self, keys, among=None):
        computed.append(len(keys))
        return logits(self, keys, among)

    monkeypatch.setattr(EdgeTruth, "_logits", counting)
    truth.best(heads[20:60].repeat(2), relations[20:60].repeat(2))
    assert sum(computed) == 10


def test_rows_that_are_made_in_parts_are_the_same(monkeypatch):
    heads, relations = every_row()
    whole = make().best(heads, relations)
    monkeypatch.setattr("lmpnn_kge.search.truth.CHUNK", 4 * E)
    assert_same(make().best(heads, relations), whole)


def test_no_more_tails_are_kept_than_there_are_entities():
    tails, _ = make(kept=1000).best(*(ids[:4] for ids in every_row()))
    assert [sorted(row) for row in tails.tolist()] == [list(range(E))] * 4


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
    truth = EdgeTruth.of(backbone, facts, weights, certain=False, kept=backbone.num_entities)
    heads, relations, _ = torch.from_numpy(triples).T
    rows = truth.rows(heads, relations)
    assert torch.isfinite(rows).all()
    assert (rows < 0).all()
    order, values = truth.best(heads, relations)
    assert torch.allclose(rows.exp().gather(1, order.long()), values, atol=1e-6)
    # The best score has the greatest truth, also if the score is a distance.
    best = backbone.score_tails(heads, relations).argmax(1, keepdim=True)
    assert torch.allclose(rows.gather(1, best)[:, 0], rows.amax(1))
