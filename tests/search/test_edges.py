"""The probability of edges: the same by row and by edge, calibrated, or refused."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from lmpnn_kge import backbone_class, open_backbone
from lmpnn_kge.errors import BackboneError, CalibrationError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.search.edges import EdgeProbability
from lmpnn_kge.search.facts import Facts

from ..conftest import TOY
from ..toy_runs import CHECKPOINTS

E, R = 120, 3


@pytest.fixture(scope="module")
def made():
    """An embedding and a graph that follows it: a higher score makes an edge more probable."""
    backbone = backbone_class("complex").random(E, R, 16)
    scores = torch.cat([backbone.score_tails(range(E), [r] * E)[None] for r in range(R)])
    random = torch.Generator().manual_seed(1)
    chance = (scores / 8 - 3.5).sigmoid() * (1 - torch.eye(E))
    held = torch.rand(scores.shape, generator=random) < chance
    relations, heads, tails = held.nonzero(as_tuple=True)
    order = torch.randperm(len(heads), generator=random)
    triples = torch.stack([heads, relations, tails], 1)[order].numpy()
    count = len(triples) // 6
    splits = {"valid": triples[:count], "test": triples[count : 2 * count]}
    splits["train"] = triples[2 * count :]
    return backbone, splits, Facts.of(splits["train"], E, R)


@pytest.fixture(scope="module")
def fitted(made):
    backbone, splits, facts = made
    return EdgeProbability.fit(backbone, facts, splits["valid"])


def every_edge():
    heads, relations, tails = np.indices((E, 2 * R, E)).reshape(3, -1)
    return torch.from_numpy(heads), torch.from_numpy(relations), torch.from_numpy(tails)


def test_a_row_has_the_probabilities_of_its_edges(fitted):
    heads, relations, tails = (ids[::37] for ids in every_edge())
    rows = fitted.rows(heads, relations)
    assert rows.shape == (len(heads), E)
    expected = rows[torch.arange(len(heads)), tails]
    assert torch.allclose(fitted.at(heads, relations, tails), expected, atol=1e-6)
    none = heads[:0]
    assert fitted.at(none, none, none).shape == (0,)
    assert fitted.rows(none, none).shape == (0, E)


def test_rows_in_many_parts_are_the_rows_in_one(fitted, monkeypatch):
    heads, relations, tails = (ids[::101] for ids in every_edge())
    whole = fitted.at(heads, relations, tails)
    monkeypatch.setattr("lmpnn_kge.search.edges.CHUNK", 7 * E)
    assert torch.allclose(fitted.at(heads, relations, tails), whole, atol=1e-6)


def test_known_edges_are_certain_unless_facts_are_ignored(made, fitted):
    _, splits, _ = made
    heads, relations, tails = torch.from_numpy(splits["train"]).T
    assert (fitted.at(heads, relations, tails) == 1).all()
    assert (fitted.at(tails, relations + R, heads) == 1).all()
    ignoring = dataclasses.replace(fitted, facts_hold=False)
    assert (ignoring.at(heads, relations, tails) < 1).all()
    assert (ignoring.rows(heads, relations) < 1).all()


@pytest.mark.parametrize("population", ["asked", "every"])
def test_probabilities_fitted_on_valid_are_reliable_on_test(made, population):
    backbone, splits, facts = made
    held_out = len(splits["valid"]) + len(splits["test"])
    fitted = EdgeProbability.fit(
        backbone, facts, splits["valid"], population=population, held_out=held_out
    )
    if population == "asked":
        known = Facts.of(np.concatenate([splits["train"], splits["valid"]]), E, R)
        reliability = fitted.measure(splits["test"], known)
    else:
        reliability = fitted.measure(splits["test"], share=len(splits["test"]) / held_out)
    assert reliability.error < 0.05
    assert reliability.count > 500


def test_questions_that_have_an_answer_are_more_often_answered(made, fitted):
    backbone, splits, facts = made
    every = EdgeProbability.fit(backbone, facts, splits["valid"], population="every")
    asked = fitted.measure(splits["test"]).share
    assert every.measure(splits["test"]).share < asked
    heads, relations, tails = every_edge()
    unknown = ~facts.hold(facts.keys_of(heads, relations), tails)
    means = [p.at(heads, relations, tails)[unknown].mean() for p in (every, fitted)]
    assert means[0] < means[1]


def test_more_held_out_triples_make_every_edge_more_probable(made):
    backbone, splits, facts = made
    one, two = (
        EdgeProbability.fit(
            backbone, facts, splits["valid"], population="every", held_out=n * len(splits["valid"])
        ).calibration.probabilities
        for n in (1, 2)
    )
    assert two == pytest.approx([min(0.999, 2 * p) for p in one])


def test_an_entity_is_not_its_own_tail_where_the_graph_has_no_such_edge(made, fitted):
    backbone, splits, _ = made
    entities = torch.arange(E)
    loops = fitted.at(entities, torch.zeros_like(entities), entities)
    assert loops.max() <= fitted.calibration.probabilities[0] + 1e-6
    train = np.concatenate([splits["train"], [[0, 0, 0]]])
    with_loops = EdgeProbability.fit(backbone, Facts.of(train, E, R), splits["valid"])
    possible = with_loops.at(entities, torch.zeros_like(entities), entities)
    assert possible[1:].max() > with_loops.calibration.probabilities[0]


WITH_BOTH_DIRECTIONS = [p for p in CHECKPOINTS.glob("*.package.pt") if "plain" not in p.stem]


@pytest.mark.parametrize("path", sorted(WITH_BOTH_DIRECTIONS), ids=lambda path: path.stem)
def test_every_backbone_gets_probabilities(path):
    backbone = open_backbone(path, dataset=TOY / "dataset")
    graph = KnowledgeGraph.open(TOY / "dataset")
    rows = graph.vocabulary.rows_in(backbone.vocabulary)
    facts = Facts.of(rows.of(graph.triples("train")), backbone.num_entities, backbone.num_relations)
    fitted = EdgeProbability.fit(backbone, facts, rows.of(graph.triples("valid")))
    heads = torch.arange(backbone.num_entities)
    probabilities = fitted.rows(heads, heads % backbone.num_relations)
    assert 0 <= probabilities.min() < probabilities.max() <= 1


def test_what_was_fitted_survives_json(made, fitted):
    backbone, _, facts = made
    content = json.loads(json.dumps(fitted.to_json(), allow_nan=False))
    again = EdgeProbability.from_json(content, "file", backbone, facts)
    heads, relations, tails = (ids[::53] for ids in every_edge())
    assert torch.equal(again.at(heads, relations, tails), fitted.at(heads, relations, tails))


@pytest.mark.parametrize(
    "damage",
    [
        {"population": "all"},
        {"population": []},
        {"facts_hold": 1},
        {"weights": [1.0]},
        {"slopes": [1.0] * 5},
        {"slopes": [-1.0] * 6},
        {"intercepts": ["a"] * 6},
        {"calibration": {}},
        {"more": 1},
    ],
)
def test_a_damaged_file_is_one_line_that_names_it(made, fitted, damage):
    backbone, _, facts = made
    with pytest.raises(CalibrationError, match=r"^some\.json.+$"):
        EdgeProbability.from_json(fitted.to_json() | damage, "some.json", backbone, facts)


def test_scores_that_are_all_equal_are_refused(made):
    _, splits, facts = made
    flat = backbone_class("distmult").from_tensors(
        torch.zeros(E, 4), torch.zeros(R, 4), reciprocal=False
    )
    with pytest.raises(CalibrationError, match="all tails the same score"):
        EdgeProbability.fit(flat, facts, splits["valid"])


def test_scores_that_overflow_are_refused(made):
    backbone, splits, facts = made
    huge = dataclasses.replace(backbone, entities=backbone.entities * 1e30)
    with pytest.raises(BackboneError, match="overflow"):
        EdgeProbability.fit(huge, facts, splits["valid"])


def test_without_valid_triples_nothing_can_be_fitted(made):
    backbone, splits, facts = made
    for nothing in (splits["valid"][:0], splits["train"]):  # or all of them are known
        with pytest.raises(CalibrationError, match="no valid triples"):
            EdgeProbability.fit(backbone, facts, nothing)


@pytest.mark.parametrize("population", ["asked", "every"])
def test_one_valid_triple_is_enough_for_a_poor_fit(made, population):
    backbone, splits, facts = made
    fitted = EdgeProbability.fit(backbone, facts, splits["valid"][:1], population=population)
    assert 0 < fitted.calibration.probabilities[-1] < 1


def test_an_unknown_population_is_refused(made):
    backbone, splits, facts = made
    with pytest.raises(CalibrationError, match="no population 'all'"):
        EdgeProbability.fit(backbone, facts, splits["valid"], population="all")
