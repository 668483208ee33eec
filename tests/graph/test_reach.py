"""The edges that queries reach are all that their answers need."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph import duckdb_engine, reach
from lmpnn_kge.graph.adjacency import Adjacency
from lmpnn_kge.graph.reach import reachable
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern, parse_pattern

from ..formulas import ENTITIES, RELATIONS, brute_force, formulas, graphs
from .conftest import follow_nothing
from .test_database import CASES, MIXED, ask_everything, entity_names, graph_of, relation_names


@pytest.fixture(autouse=True, scope="module")
def every_graph_counts_as_large():
    """Edges are looked up in the smallest graphs, too, however many they are."""
    with pytest.MonkeyPatch.context() as patch:
        follow_nothing(patch)
        patch.setattr(duckdb_engine, "SMALL", -1)
        patch.setattr(reach, "SHARE", 1000.0)
        yield


def small(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(duckdb_engine, "SMALL", 1000)


@given(formula=formulas(entity_names, relation_names), triples=graphs)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_reached_edges_give_the_answers_of_trying_every_assignment(formula, triples):
    try:
        normalise(formula)
    except QueryError:
        assume(False)
    assert graph_of(triples).answer_rows(formula).tolist() == brute_force(formula, triples)


@pytest.mark.parametrize("text", CASES)
@given(triples=graphs)
@settings(max_examples=5, deadline=None)
def test_formulas_of_every_form_are_answered_from_reached_edges(text, triples):
    formula = parse(text)
    assert graph_of(triples).answer_rows(formula).tolist() == brute_force(formula, triples)


@pytest.mark.parametrize("text", MIXED)
@given(train=graphs, valid=graphs, test=graphs)
@settings(max_examples=5, deadline=None)
def test_answers_costs_and_reasons_are_those_from_all_edges(text, train, valid, test):
    pattern = Pattern(parse(text))
    entities = np.array([[int(name[1:]) for name in pattern.constants]])
    relations = np.array([[int(name[1:]) for name in pattern.relations]])
    results = []
    for looked_up in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not looked_up:
                small(patch)
            graph = graph_of(train, valid, test)
            answers = [ask_everything(graph, text, split) for split in ("train", "valid", "test")]
            costs = graph.database.missing_edges(pattern, entities, relations, "train", "test")
            results.append((answers, costs.values.tolist(), costs.costs.tolist()))
    assert results[0] == results[1]


def edges_of(text, triples, constants, relations, level=0):
    pattern = parse_pattern(text)
    rows = np.array(sorted(triples)).reshape(-1, 3)
    adjacency = Adjacency.of(rows[:, :3], np.zeros(len(rows)), ENTITIES, RELATIONS)
    columns = reachable(
        normalise(pattern.formula),
        {name: np.array(constants)[:, i] for i, name in enumerate(pattern.constants)},
        {name: np.array(relations)[:, i] for i, name in enumerate(pattern.relations)},
        adjacency,
        level,
    )
    if columns is None:
        return None
    return sorted(zip(*(columns[name].tolist() for name in "spo"), strict=True))


def test_edges_of_other_relations_and_entities_are_not_read():
    triples = {(0, 0, 1), (0, 1, 2), (1, 1, 2), (3, 1, 2), (3, 0, 1)}
    path = "r1(s1,e1)&r2(e1,f)"
    assert edges_of(path, triples, [[0]], [[0, 1]]) == [(0, 0, 1), (1, 1, 2)]


def test_an_edge_that_is_reached_from_both_ends_is_read_once():
    triples = {(0, 0, 1), (3, 0, 1)}
    both = "r1(s1,f)&r2(f,s2)"
    inverse = 0 + RELATIONS
    edges = edges_of(both, triples, [[0, 3]], [[0, inverse]])
    assert edges == [(0, 0, 1), (1, inverse, 3)]
    assert edges_of("r1(s1,e1)&r1(e2,s2)&r2(e1,f)&r2(e2,f)", triples, [[0, 1]], [[0, 1]]) == [
        (0, 0, 1),
        (3, 0, 1),
    ]


def test_the_whole_graph_is_read_if_no_constant_leads_to_an_atom():
    assert edges_of("r1(e1,f)", {(0, 0, 1)}, np.zeros((1, 0)), [[0]]) is None


def test_the_whole_graph_is_read_if_a_large_part_of_it_is_reached(monkeypatch):
    triples = {(0, 0, o) for o in range(ENTITIES)}
    monkeypatch.setattr(reach, "SHARE", 0.25)
    assert edges_of("r1(s1,f)", triples, [[0]], [[0]]) is None
    assert edges_of("r1(s1,e1)&r2(e1,f)", triples, [[0]], [[0, 1]]) is None
