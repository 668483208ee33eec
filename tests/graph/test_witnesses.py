"""Witnesses of known answers against trying every assignment, and the reasons that they make."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import DatasetError, QueryError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.explain import explain
from lmpnn_kge.query.formula import FREE, Equal, Variable
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import parse_pattern
from lmpnn_kge.query.reason import Status

from ..formulas import ENTITIES, RELATIONS, brute_force, formulas, graphs
from .test_database import CASES, graph_of

ALL = 10_000

entity_names = st.sampled_from([f"e{i}" for i in range(ENTITIES)])
relation_names = st.sampled_from([f"r{i}" for i in range(RELATIONS)])
random_formulas = formulas(entity_names, relation_names)


def row(term, values) -> int:
    return values[term] if isinstance(term, Variable) else int(term.name[1:])


def edge(atom, values) -> tuple[int, int, int]:
    return row(atom.head, values), int(atom.relation[1:]), row(atom.tail, values)


def is_true(conjunct, values, triples) -> bool:
    """Whether a conjunct is true, given values of all its variables but those of its groups."""
    for literal in conjunct.literals:
        if isinstance(literal.atom, Equal):
            holds = row(literal.atom.left, values) == row(literal.atom.right, values)
        else:
            holds = edge(literal.atom, values) in triples
        if holds == literal.negated:
            return False
    return not any(list(assignments(group, values, triples)) for group in conjunct.groups)


def assignments(conjunct, values, triples):
    """All values of a conjunct's own variables that make it true."""
    for chosen in itertools.product(range(ENTITIES), repeat=len(conjunct.bound)):
        extended = {**values, **dict(zip(conjunct.bound, chosen, strict=True))}
        if is_true(conjunct, extended, triples):
            yield extended


def check_witnesses(formula, triples):
    graph = graph_of(triples)
    disjuncts = normalise(formula)
    everyone = range(ENTITIES)
    by_entity = graph.witnesses(formula, everyone, limit=ALL)
    first = graph.witnesses(formula, everyone, limit=2)
    answers = brute_force(formula, triples)
    assert [entity for entity in everyone if by_entity[entity]] == answers
    for entity, witnesses, few in zip(everyone, by_entity, first, strict=True):
        pairs = [(w.disjunct, dict(w.values)) for w in witnesses]
        expected = [
            (disjunct, values)
            for disjunct in disjuncts
            for values in assignments(disjunct, {FREE: entity}, triples)
        ]
        assert len(pairs) == len(expected)
        assert all(pair in pairs for pair in expected)
        assert few == witnesses[:2]


@given(formula=random_formulas, triples=graphs)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_witnesses_are_all_assignments_that_make_the_formula_true(formula, triples):
    try:
        normalise(formula)
    except QueryError:
        assume(False)
    check_witnesses(formula, triples)


@pytest.mark.parametrize(
    "text",
    [
        *CASES,
        "r0(e0, ?x) & ?x = ?y & r1(?y, ?)",
        "?x = ?y & ?y = ? & r0(?x, e0)",
        "r0(e0, ?x) & r1(?x, ?y) & r0(?y, ?) & r0(?x, ?y)",
        "r0(?, ?x) & r1(?x, ?X) & !r0(?X, ?x)",
        "r0(?, ?x) & r0(?, ?y) & r0(?, ?z) & r1(?y, ?w)",
        "r0(?, e0) & r1(e0, ?x) & !(r0(?x, ?y) & r1(?y, ?))",
        '? != "e0" & r0(?x, ?)',
    ],
)
@given(triples=graphs)
@settings(max_examples=10, deadline=None)
def test_formulas_of_every_form_have_witnesses(text, triples):
    check_witnesses(parse(text), triples)


@given(
    formula=random_formulas,
    train=graphs,
    test=graphs,
    chances=st.lists(st.floats(0, 1), min_size=1, max_size=5),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_each_atom_of_a_reason_is_what_it_is_called(formula, train, test, chances):
    """The witnesses need test edges, and training edges are known."""
    try:
        normalise(formula)
    except QueryError:
        assume(False)
    graph = graph_of(train, (), test)

    def probability(edges):
        return np.array([chances[edge_.sum() % len(chances)] for edge_ in edges])

    for entity, witnesses in enumerate(graph.witnesses(formula, range(ENTITIES), "test", ALL)):
        reasons = explain(witnesses, graph.vocabulary, graph.holds, probability)
        for witness, reason in zip(witnesses, reasons, strict=True):
            assert reason.answer.id == f"e{entity}"
            assert {v: int(n.id[1:]) for v, n in reason.values.items()} == witness.values
            product = 1.0
            for literal, atom in zip(witness.disjunct.literals, reason.atoms, strict=True):
                if isinstance(literal.atom, Equal):
                    assert atom.status is Status.TRUE
                    continue
                triple = edge(literal.atom, witness.values)
                ids = (f"e{triple[0]}", f"r{triple[1]}", f"e{triple[2]}")
                assert (atom.head.id, atom.relation.id, atom.tail.id) == ids
                chance = chances[sum(triple) % len(chances)]
                if literal.negated:
                    assert atom.status is Status.NOT_KNOWN
                    assert triple not in train | test
                    product *= 1 - chance
                elif atom.status is Status.PREDICTED:
                    assert triple in test - train
                    assert atom.probability == chance
                    product *= chance
                else:
                    assert atom.status is Status.KNOWN
                    assert triple in train
            assert math.isclose(reason.truth, product)


@given(formula=random_formulas, triples=graphs)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_reasons_of_known_answers_are_certain(formula, triples):
    try:
        normalise(formula)
    except QueryError:
        assume(False)
    graph = graph_of(triples)
    for entity in range(ENTITIES):
        reasons = graph.explain(formula, f"e{entity}", limit=ALL)
        assert bool(reasons) == (entity in brute_force(formula, triples))
        assert all(reason.truth == 1 for reason in reasons)
        fine = {Status.KNOWN, Status.NOT_KNOWN, Status.NO_PATH, Status.TRUE}
        assert {check.status for reason in reasons for check in reason.checks} <= fine


def test_witnesses_of_several_queries_are_found_at_once():
    database = graph_of({(0, 0, 1), (0, 0, 3), (1, 1, 2), (3, 1, 2), (2, 0, 1)}).database
    pattern = parse_pattern("r1(s1,e1)&r2(e1,f)")
    constants, relations = np.array([[0], [2], [2]]), np.array([[0, 1]] * 3)
    found = database.witnesses(pattern, constants, relations, np.array([2, 2, 3]), limit=5)
    middle = [[witness.values[Variable("e1")] for witness in witnesses] for witnesses in found]
    assert middle == [[1, 3], [1], []]


def test_a_witness_may_use_inverse_relations():
    database = graph_of({(0, 0, 1), (2, 0, 1)}).database
    pattern, inverse = parse_pattern("r1(e1,f)"), 0 + RELATIONS
    (witnesses,) = database.witnesses(
        pattern, np.zeros((1, 0)), np.array([[inverse]]), np.array([2])
    )
    assert [witness.values[Variable("e1")] for witness in witnesses] == [1]


def test_many_solutions_do_not_slow_down_a_few_witnesses():
    """A star with 50^6 solutions, of which no step keeps more than the first three."""
    triples = np.array([(0, 0, entity) for entity in range(1, 51)])
    names = Vocabulary([f"e{i}" for i in range(51)], ["r0"])
    empty = np.empty((0, 3), np.int64)
    graph = KnowledgeGraph(Path(), "star", names, {"train": triples, "valid": empty, "test": empty})
    formula = " & ".join(f"r0(?, ?x{place})" for place in range(6))
    (witnesses,) = graph.witnesses(formula, [0], limit=3)
    assert len({tuple(witness.values.values()) for witness in witnesses}) == 3


def test_no_answers_have_no_witnesses():
    assert graph_of({(0, 0, 1)}).witnesses("r0(e0, ?)", []) == []


def test_triples_are_known_from_their_split_on():
    graph = graph_of({(0, 0, 1)}, {(0, 0, 2)}, {(0, 0, 3), (0, 0, 1)})
    triples = np.array([(0, 0, entity) for entity in range(4)])
    assert graph.holds(triples).tolist() == [False, True, False, False]
    assert graph.holds(triples, "valid").tolist() == [False, True, True, False]
    assert graph.holds(triples, "test").tolist() == [False, True, True, True]
    assert graph_of(()).holds(triples).tolist() == [False] * 4
    with pytest.raises(DatasetError, match="did you mean 'train'"):
        graph.holds(triples, "trian")


def test_an_entity_is_explained_by_its_label():
    labels = ["Ann", "Bo B", None, None]
    names = Vocabulary(["e0", "e1", "e2", "e3"], ["r0", "r1"], labels, ["likes", None])
    splits = graph_of({(0, 0, 1), (1, 1, 0)}).splits
    graph = KnowledgeGraph(Path(), "tiny", names, splits)
    (reason,) = graph.explain("likes(e0, ?x) & r1(?x, ?) & !(likes(?, ?y) & r1(?y, e2))", "Ann")
    assert str(reason).splitlines() == [
        "Ann with ?x = Bo B",
        '  known             likes(Ann, "Bo B")',
        '  known             r1("Bo B", Ann)',
        "  no path is known  likes(Ann, ?y) & r1(?y, e2)",
    ]
