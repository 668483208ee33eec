"""Witnesses are the best assignments of entities to variables, by trying all of them."""

import itertools
import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmpnn_kge import QueryError
from lmpnn_kge.query.formula import FREE, And, Atom, Constant, Not, Variable
from lmpnn_kge.query.normal_form import normalise, scoped
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.search.logic import ALMOST, Logic
from lmpnn_kge.search.solve import Solver
from lmpnn_kge.search.witness import find_witnesses

from ..formulas import ENTITIES, RELATIONS, graphs
from .dense import DenseTruth
from .test_solve import LOGICS, VOCABULARY, ByHand, any_formula

#: f & !(r0(?x, ?) & g)
with_a_denied_path = st.builds(
    lambda outer, inner: And((outer, Not(And((Atom("r0", Variable("x"), FREE), inner))))),
    st.sampled_from(["r0", "r1"]).map(lambda name: Atom(name, Constant("e1"), FREE)),
    any_formula,
)
ANSWERS = torch.arange(ENTITIES)


def find(truth, logic, formula, count=1, answers=ANSWERS):
    pattern = Pattern(formula)
    constants, relations = map(torch.from_numpy, VOCABULARY.resolve(pattern))
    solver = Solver(truth, logic, beam=100, guesses=100, tries=100)
    return find_witnesses(solver, pattern, constants, relations, answers, count)


class Assignments:
    """The truth of all assignments of a formula, one by one."""

    def __init__(self, truth, logic, formula):
        pattern = Pattern(formula)
        columns = map(torch.from_numpy, VOCABULARY.resolve(pattern))
        self.by_hand = ByHand(truth, logic, pattern, *columns)
        self.disjuncts = normalise(formula)

    def truth(self, disjunct, values):
        conjunct = scoped(disjunct)
        items = [*conjunct.literals, *conjunct.groups]
        return self.by_hand.both([self.by_hand.item(item, values, {}) for item in items])

    def best(self, answer):
        """The truths of all assignments of an answer, the best first."""
        truths = [
            self.truth(disjunct, {FREE: answer, **dict(zip(disjunct.bound, chosen, strict=True))})
            for disjunct in self.disjuncts
            for chosen in itertools.product(range(ENTITIES), repeat=len(disjunct.bound))
        ]
        return sorted(truths, reverse=True)


def can_be_read(formula):
    try:
        normalise(formula)
    except QueryError:
        return False
    return True


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("t_norm", ["product", "godel"])
@given(any_formula, graphs)
@settings(max_examples=40, deadline=None)
def test_with_max_the_witnesses_are_the_best_assignments(t_norm, count, formula, triples):
    assume(can_be_read(formula))
    truth, logic = DenseTruth.random(ENTITIES, RELATIONS, triples), Logic(t_norm, "max")
    assignments = Assignments(truth, logic, formula)
    for answer, witnesses in enumerate(find(truth, logic, formula, count)):
        best = assignments.best(answer)[:count]
        truths = [assignments.truth(w.disjunct, w.values) for w in witnesses]
        assert truths == pytest.approx([t for t in best if t > 0] or best[:1], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("logic", LOGICS, ids=str)
@given(any_formula, graphs)
@settings(max_examples=40, deadline=None)
def test_witnesses_are_distinct_sorted_and_complete(logic, formula, triples):
    assume(can_be_read(formula))
    truth = DenseTruth.random(ENTITIES, RELATIONS, triples)
    assignments = Assignments(truth, logic, formula)
    for answer, witnesses in enumerate(find(truth, logic, formula, 4)):
        assert 1 <= len(witnesses) <= 4
        keys = [(w.disjunct, tuple(sorted(w.values.items(), key=str))) for w in witnesses]
        assert len(set(keys)) == len(keys)
        truths = [assignments.truth(w.disjunct, w.values) for w in witnesses]
        assert truths == pytest.approx(sorted(truths, reverse=True), rel=1e-4, abs=1e-6)
        for witness in witnesses:
            assert set(witness.values) == {FREE, *witness.disjunct.bound}
            assert witness.values[FREE] == answer
            assert witness.disjunct in assignments.disjuncts


@pytest.mark.parametrize("logic", LOGICS, ids=str)
@given(with_a_denied_path, graphs)
@settings(max_examples=40, deadline=None)
def test_each_denied_group_has_the_truth_of_its_path(logic, formula, triples):
    assume(can_be_read(formula))
    truth = DenseTruth.random(ENTITIES, RELATIONS, triples)
    assignments = Assignments(truth, logic, formula)
    for (witness,) in find(truth, logic, formula):
        groups = scoped(witness.disjunct).groups
        assert groups or len(assignments.disjuncts) > 1
        assert len(witness.paths) == len(groups)
        for group, chance in zip(groups, witness.paths, strict=True):
            (expected,) = assignments.by_hand.of_conjunct(group, witness.values, None)
            assert 0 <= chance <= 1
            certain = math.isclose(expected, 1, abs_tol=1e-9)
            assert chance == pytest.approx(1 if certain else min(expected, ALMOST), abs=1e-4)


def test_the_answers_may_come_in_any_order_and_twice():
    truth, logic = DenseTruth.random(ENTITIES, RELATIONS), Logic("product", "max")
    formula = parse("r0(e0, ?x) & r1(?x, ?)")
    every = find(truth, logic, formula)
    some = find(truth, logic, formula, answers=torch.tensor([3, 0, 3]))
    assert some == [every[3], every[0], every[3]]
    assert find(truth, logic, formula, answers=ANSWERS[:0]) == []


def test_more_witnesses_may_be_wanted_than_anything_counts():
    truth, logic = DenseTruth.random(ENTITIES, RELATIONS), Logic("product", "max")
    formula = parse("r0(e0, ?x) & r1(?x, ?)")
    assert find(truth, logic, formula, 10**400) == find(truth, logic, formula, 1000)


def test_the_disjunct_is_the_one_that_is_true():
    truth = DenseTruth.random(ENTITIES, RELATIONS)
    truth.table[:] = 0.01
    truth.table[1, 0, 3] = truth.table[1 + RELATIONS, 3, 0] = 0.9
    formula = parse("r0(e0, ?) | r1(e0, ?)")
    witness, other = find(truth, Logic("product", "noisy-or"), formula, 2)[3]
    assert [literal.atom.relation for literal in witness.disjunct.literals] == ["r1"]
    assert [literal.atom.relation for literal in other.disjunct.literals] == ["r0"]


def test_an_assignment_that_cannot_be_true_is_no_second_witness():
    truth = DenseTruth.random(ENTITIES, RELATIONS)
    formula = parse("r0(e0, ?x) & r1(?x, ?) & ?x = e2")
    for (witness,) in find(truth, Logic("product", "noisy-or"), formula, 3):
        assert [row for v, row in witness.values.items() if v != FREE] == [2]


def test_a_narrow_beam_still_gives_a_witness_of_known_edges():
    edges = {(0, 0, 1), (1, 1, 2)}
    truth = DenseTruth.random(ENTITIES, RELATIONS, edges)
    formula = parse("r0(e0, ?x) & r1(?x, ?)")
    pattern = Pattern(formula)
    columns = map(torch.from_numpy, VOCABULARY.resolve(pattern))
    solver = Solver(truth, Logic("product", "noisy-or"), beam=1, guesses=1, tries=1)
    ((witness,),) = find_witnesses(solver, pattern, *columns, torch.tensor([2]), 1)
    assert {v.name: row for v, row in witness.values.items()} == {"": 2, "x": 1}
    assert all(isinstance(t, Constant) or t in witness.values for t in witness.disjunct.terms)


def test_many_uncertain_paths_are_not_a_known_one():
    truth = DenseTruth.random(200, RELATIONS)
    truth.table[:] = 0.6
    formula = parse("r0(e0, ?) & !(r0(?, ?x) & r1(?x, e1))")
    ((witness,),) = find(truth, Logic("product", "noisy-or"), formula, answers=torch.tensor([3]))
    assert witness.paths == (pytest.approx(ALMOST),)
