"""Exact answers that are tuples, against the definition of a formula's meaning."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.query.formula import Variable
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern, parse_pattern

from ..formulas import ENTITIES, brute_force_tuples, graphs, numbered, tuple_formulas
from .test_database import entity_names, graph_of, relation_names
from .test_witnesses import assignments

FILTERED = [HealthCheck.filter_too_much]


def accepted(formula):
    try:
        return normalise(formula)
    except QueryError:
        assume(False)


def ask(graph, pattern, split="test", **options):
    rows = graph.vocabulary.resolve(pattern)
    return graph.database.answer(pattern, *(row[None] for row in rows), split, **options)


@pytest.mark.parametrize("arity", [2, 3])
@given(data=st.data(), triples=graphs)
@settings(max_examples=150, deadline=None, suppress_health_check=FILTERED)
def test_tuples_equal_those_of_trying_every_assignment(arity, data, triples):
    formula = data.draw(tuple_formulas(entity_names, relation_names, arity))
    accepted(formula)
    graph, expected = graph_of(triples), brute_force_tuples(formula, triples, arity)
    assert list(map(tuple, graph.answer_tuples(formula).rows.tolist())) == expected
    few = graph.answer_tuples(formula, limit=2)
    assert list(map(tuple, few.rows.tolist())) == expected[:2]
    assert few.complete == (len(expected) <= 2)


@given(data=st.data(), triples=graphs)
@settings(max_examples=60, deadline=None, suppress_health_check=FILTERED)
def test_about_one_variable_a_pattern_has_the_entities_of_its_tuples(data, triples):
    formula = data.draw(tuple_formulas(entity_names, relation_names, 2))
    accepted(formula)
    graph, tuples = graph_of(triples), brute_force_tuples(formula, triples, 2)
    answers = ask(graph, Pattern(formula))
    for place, variable in enumerate(numbered(2)):
        expected = sorted({entities[place] for entities in tuples})
        assert ask(graph, Pattern(formula).about(variable)).of(0).tolist() == expected
        assert answers.at(place).of(0).tolist() == expected


def in_order(assignments):
    """The same whatever order the variables have."""
    return sorted(sorted((v.name, row) for v, row in each.items()) for each in assignments)


@given(data=st.data(), triples=graphs)
@settings(max_examples=60, deadline=None, suppress_health_check=FILTERED)
def test_every_tuple_has_the_witnesses_by_which_it_answers(data, triples):
    formula = data.draw(tuple_formulas(entity_names, relation_names, 2))
    disjuncts, free = accepted(formula), numbered(2)
    pairs = list(itertools.product(range(ENTITIES), repeat=2))
    for pair, witnesses in zip(
        pairs, graph_of(triples).witnesses(formula, pairs, limit=1000), strict=True
    ):
        expected = [
            values
            for disjunct in disjuncts
            for values in assignments(disjunct, dict(zip(free, pair, strict=True)), triples)
        ]
        assert in_order(w.values for w in witnesses) == in_order(expected)


def test_the_missing_edges_of_a_tuple_are_those_of_its_cheapest_witness():
    graph = graph_of({(0, 0, 1)}, test={(1, 1, 2), (1, 0, 3), (0, 0, 3)})
    pattern = parse_pattern("r1(s1,f1)&r2(f1,f2)")
    rows = np.array([[0], [0]]), np.array([[0, 1], [0, 0]])
    priced = graph.database.missing_edges(pattern, *rows, "train", "test")
    assert priced.values.tolist() == [[1, 2], [1, 3]]
    assert priced.offsets.tolist() == [0, 1, 2]
    assert priced.costs.tolist() == [1, 1]


def test_many_queries_of_a_pattern_are_limited_one_by_one():
    graph = graph_of({(0, 0, o) for o in range(4)} | {(o, 1, s) for o in range(4) for s in (1, 2)})
    pattern = parse_pattern("r1(s1,f1)&r2(f1,f2)")
    rows = np.array([[0], [1], [0]]), np.array([[0, 1]] * 3)
    answers = graph.database.answer(pattern, *rows, limit=3)
    assert answers.counts.tolist() == [3, 0, 3]
    assert answers.of(2).tolist() == [[0, 1], [0, 2], [1, 1]]


def test_answers_are_ids_and_reasons_name_the_whole_tuple():
    graph = graph_of({(0, 0, 1), (1, 1, 2)})
    formula = "r0(?2, ?x) & r1(?x, ?1)"
    assert graph.answer(formula) == [("e2", "e0")]
    (reason,) = graph.explain(formula, ["e2", "e0"])
    assert str(reason).splitlines()[0] == "e2, e0 with ?x = e1"
    assert reason.to_json()["values"]["?2"] == {"id": "e0", "label": "e0"}
    with pytest.raises(QueryError, match="asks for 2 entities at once"):
        graph.explain(formula, "e2")
    with pytest.raises(QueryError, match=r"asks for 2 entities at once \(\?1, \?2\), here it must"):
        graph.answer_rows(formula)


def test_too_many_tuples_are_refused_unless_a_limit_is_given(monkeypatch):
    monkeypatch.setattr("lmpnn_kge.graph.knowledge_graph.MAX_TUPLES", 2)
    graph = graph_of({(0, 0, o) for o in range(3)})
    with pytest.raises(QueryError, match="more than 2 answers; give a limit"):
        graph.answer("r0(?1, ?2)")
    assert graph.answer("r0(?1, ?2)", limit=1) == [("e0", "e0")]


@pytest.mark.parametrize("limit", [2**62, 2**64, 2**127, 10**40, 10**400])
def test_a_limit_may_be_any_number(limit):
    graph = graph_of({(0, 0, o) for o in range(3)})
    assert graph.answer("r0(?1, ?2)", limit=limit) == graph.answer("r0(?1, ?2)")
    assert len(graph.explain("r0(?x, ?)", "e1", limit=limit)) == 1


@pytest.mark.parametrize("limit", [0, -1])
@pytest.mark.parametrize("formula", ["r0(?1, ?2)", "r0(e0, ?)"])
def test_a_limit_below_one_is_refused(formula, limit):
    with pytest.raises(QueryError, match=f"limit must be at least 1, not {limit}"):
        graph_of({(0, 0, 1)}).answer(formula, limit=limit)


def test_a_sparql_query_gives_a_limit(monkeypatch):
    pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    monkeypatch.setattr("lmpnn_kge.graph.knowledge_graph.MAX_TUPLES", 2)
    graph = graph_of({(0, 0, o) for o in range(3)})
    assert graph.answer("SELECT ?b ?a { ?a <kge:r0> ?b } LIMIT 2") == [("e0", "e0"), ("e1", "e0")]


def test_tuples_of_several_parts_are_sorted_and_merged():
    one = Answers(np.array([0, 1, 2]), np.array([[3, 1], [0, 2]], np.int32))
    other = Answers(np.array([0, 2, 2]), np.array([[1, 9], [3, 0]], np.int32))
    assert one.merged(other).of(0).tolist() == [[1, 9], [3, 0], [3, 1]]
    none = Answers.none(1, 2)
    assert Answers.joined([none, one]).counts.tolist() == [0, 1, 1]


def test_sparql_asks_for_tuples_in_the_order_of_its_columns():
    pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    graph = graph_of({(0, 0, 1), (1, 1, 2), (2, 0, 1)})
    query = "SELECT ?c ?a { ?a <kge:r0> ?1 . ?1 <kge:r1> ?c }"
    assert str(parse(query)) == "r0(?2, ?x1) & r1(?x1, ?1)"
    assert graph.answer(query) == [("e2", "e0"), ("e2", "e2")]


def test_a_free_variable_may_be_any_entity():
    graph = graph_of({(0, 0, 1)})
    assert graph.answer("?1 = e0 & ?2 != ?1") == [("e0", f"e{n}") for n in (1, 2, 3)]
    assert Variable("2") in normalise(parse("?1 = e0 & ?2 != ?1"))[0].free
