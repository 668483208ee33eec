"""Exact answers against the definition of a formula's meaning."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import DatasetError, QueryError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.formula import FREE, Variable
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern, parse_pattern

from ..formulas import ENTITIES, RELATIONS, brute_force, formulas, graphs

entity_names = st.sampled_from([f"e{i}" for i in range(ENTITIES)])
relation_names = st.sampled_from([f"r{i}" for i in range(RELATIONS)])


def graph_of(triples, valid=(), test=()) -> KnowledgeGraph:
    splits = {
        name: np.array(sorted(rows), np.int64).reshape(-1, 3)
        for name, rows in (("train", triples), ("valid", valid), ("test", test))
    }
    entities = [f"e{i}" for i in range(ENTITIES)]
    relations = [f"r{i}" for i in range(RELATIONS)]
    return KnowledgeGraph(Path(), "tiny", Vocabulary(entities, relations), splits)


@given(formula=formulas(entity_names, relation_names), triples=graphs)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_answers_equal_those_of_trying_every_assignment(formula, triples):
    try:
        normalise(formula)
    except QueryError as refused:
        event(str(refused).split(" of ")[0])
        assume(False)
    assert graph_of(triples).answer_rows(formula).tolist() == brute_force(formula, triples)


@given(
    formula=formulas(entity_names, relation_names, leaves=3),
    train=graphs,
    valid=graphs,
    test=graphs,
)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_a_split_knows_its_own_edges_and_those_of_earlier_splits(formula, train, valid, test):
    try:
        normalise(formula)
    except QueryError:
        assume(False)
    graph = graph_of(train, valid, test)
    for split, known in (
        ("train", train),
        ("valid", train | valid),
        ("test", train | valid | test),
    ):
        assert graph.answer_rows(formula, split).tolist() == brute_force(formula, known)


CASES = [
    "r0(e0, ?)",
    "r0(?, ?)",
    "r0(e0, ?x) & r1(?x, ?) & r0(?x, ?)",
    "r0(e0, ?) & r1(?x, ?)",
    "r0(?x, ?) & r1(?x, ?y) & r0(?y, ?)",
    "r0(?, ?x) & r0(?, ?y) & ?x != ?y",
    "!r0(e0, ?)",
    "!r0(?x, ?)",
    "!r0(?x, ?) & !r1(?x, ?)",
    "!(r0(e0, ?x) & r1(?x, ?)) & r0(e1, ?)",
    "!(r0(e0, ?x) & !(r1(?x, ?y) & r0(?y, ?)))",
    "r0(e0, ?) | r1(?, ?x) & r0(?x, e0)",
    "r0(e0, ?) & r1(e0, ?)",
    "? = e2",
    "? = ?x & r0(?x, e0)",
    "? != e0 & ? != e1",
    "r0(e0, ?) & !r0(e0, ?)",
]


@pytest.mark.parametrize("text", CASES)
@given(triples=graphs)
@settings(max_examples=10, deadline=None)
def test_formulas_of_every_form_are_answered_by_definition(text, triples):
    formula = parse(text)
    assert graph_of(triples).answer_rows(formula).tolist() == brute_force(formula, triples)


def test_variables_differ_by_case():
    formula = parse("r0(?x, ?X) & r0(?, ?x) & r1(?, ?X) & r0(?x, ?y) & r1(?X, ?y)")
    triples = {(1, 0, 2), (0, 0, 1), (0, 1, 2), (1, 0, 3), (2, 1, 3)}
    assert graph_of(triples).answer_rows(formula).tolist() == brute_force(formula, triples) == [0]


def cheapest(formula, train, everything, entity) -> int:
    """The fewest atoms without a training edge, over all ways to make a positive formula true."""
    costs = []
    for disjunct in normalise(formula):
        for chosen in itertools.product(range(ENTITIES), repeat=len(disjunct.bound)):
            values = {FREE: entity, **dict(zip(disjunct.bound, chosen, strict=True))}
            edges = [
                tuple(
                    values[term] if isinstance(term, Variable) else int(term.name[1:])
                    for term in literal.terms
                )
                for literal in disjunct.literals
            ]
            relations = [int(literal.atom.relation[1:]) for literal in disjunct.literals]
            triples = [(h, r, t) for (h, t), r in zip(edges, relations, strict=True)]
            if everything.issuperset(triples):
                costs.append(sum(triple not in train for triple in triples))
    return min(costs)


@pytest.mark.parametrize(
    "text",
    [
        "r0(e0, ?)",
        "r0(e0, ?x) & r1(?x, ?)",
        "r0(e0, ?) & r1(?x, ?)",
        "r0(e0, ?x) & r1(?x, ?y) & r0(?y, ?) & r0(?x, ?y)",
        "r0(e0, ?) | r1(e1, ?x) & r1(?x, ?)",
    ],
)
@given(
    train=graphs,
    test=graphs,
)
@settings(max_examples=15, deadline=None)
def test_missing_edges_are_those_of_the_cheapest_witness(text, train, test):
    graph = graph_of(train, (), test)
    pattern = Pattern(parse(text))
    constants, relations = graph.vocabulary.resolve(pattern)
    answers = graph.database.missing_edges(
        pattern, constants[None], relations[None], observed="train", full="test"
    )
    assert answers.values.tolist() == brute_force(pattern.formula, train | test)
    assert answers.costs.tolist() == [
        cheapest(pattern.formula, train, train | test, entity) for entity in answers.values
    ]


def test_all_queries_of_a_pattern_are_answered_at_once():
    graph = graph_of({(0, 0, 1), (1, 1, 2), (3, 0, 1), (3, 0, 2)})
    pattern = parse_pattern("r1(s1,e1)&r2(e1,f)")
    answers = graph.database.answer(pattern, np.array([[0], [3], [2]]), np.array([[0, 1]] * 3))
    assert [answers.of(i).tolist() for i in range(3)] == [[2], [2], []]


def test_a_relation_beyond_the_last_is_an_inverse():
    graph = graph_of({(0, 0, 1), (2, 0, 1)})
    pattern = parse_pattern("r1(s1,f)")
    inverse = 0 + RELATIONS
    answers = graph.database.answer(pattern, np.array([[1]]), np.array([[inverse]]))
    assert answers.of(0).tolist() == [0, 2]


def test_an_unknown_split_is_refused():
    with pytest.raises(DatasetError, match="did you mean 'train'"):
        graph_of(set()).answer("r0(e0, ?)", split="trian")
