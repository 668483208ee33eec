"""Tuples that search finds, against the truth of every tuple."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.query.explain import Witness
from lmpnn_kge.query.patterns import parse_pattern
from lmpnn_kge.search.logic import Logic
from lmpnn_kge.search.solve import Solver
from lmpnn_kge.search.tuples import find_tuples, tuple_truth
from lmpnn_kge.search.witness import find_witnesses

from ..formulas import ENTITIES, RELATIONS, brute_force_tuples, graphs, numbered, tuple_formulas
from .dense import DenseTruth
from .test_solve import VOCABULARY, ByHand
from .test_solve import query as batch

ids = st.sampled_from(VOCABULARY.entity_ids), st.sampled_from(VOCABULARY.relation_ids)
LOGIC = Logic("product", "noisy-or")
CHAIN = parse_pattern("r1(s1,f1)&r2(f1,f2)")
ONE, TWO = numbered(2)
NO_WEIGHTS = [torch.zeros(ENTITIES)] * 3


def solver(truth, logic=LOGIC):
    return Solver(truth, logic, beam=100, guesses=100, tries=100)


def query(formula):
    pattern, constants, relations = batch(formula)
    return pattern, constants[0], relations[0]


@pytest.mark.parametrize("arity", [2, 3])
@given(data=st.data(), triples=graphs)
@settings(max_examples=25, deadline=None)
def test_with_certain_edges_only_the_true_tuples_are_the_exact_answers(arity, data, triples):
    formula = data.draw(tuple_formulas(*ids, arity))
    pattern, *columns = query(formula)
    truth = DenseTruth.random(ENTITIES, RELATIONS, triples)
    truth.table = truth.table.floor()
    every = torch.tensor(list(itertools.product(range(ENTITIES), repeat=arity)))
    truths = tuple_truth(solver(truth), pattern, *columns, every).exp()
    expected = brute_force_tuples(formula, triples, arity)
    assert [tuple(t) for t in every[truths > 0.5].tolist()] == expected
    found = find_tuples(
        solver(truth), pattern, *columns, ENTITIES**arity, weights=NO_WEIGHTS[:arity]
    )
    assert {*map(tuple, found.tolist())} >= {*expected}


@given(data=st.data(), triples=graphs)
@settings(max_examples=25, deadline=None)
def test_the_truth_of_a_tuple_is_that_of_its_conditions(data, triples):
    pattern, *columns = query(data.draw(tuple_formulas(*ids, 2)))
    truth = DenseTruth.random(ENTITIES, RELATIONS, triples)
    every = torch.tensor(list(itertools.product(range(ENTITIES), repeat=2)))
    truths = tuple_truth(solver(truth), pattern, *columns, every).exp()
    by_hand = ByHand(truth, LOGIC, pattern, *columns)
    for pair, found in zip(every.tolist(), truths.tolist(), strict=True):
        values = dict(zip(numbered(2), pair, strict=True))
        denied = by_hand.both(
            1 - by_hand.of_conjunct(disjunct, values, None)[0] for disjunct in pattern.disjuncts
        )
        assert found == pytest.approx(1 - denied, rel=1e-4, abs=1e-6)


def test_the_best_tuple_is_found_although_its_second_entity_is_not_the_best():
    truth = DenseTruth.random(5, 2, seed=3)
    truth.table[:2] = 0.01
    truth.table[0, 0, 1], truth.table[0, 0, 2] = 0.9, 0.8
    truth.table[1, 1, 3], truth.table[1, 2, 4] = 0.5, 0.6
    truth.table[2:] = truth.table[:2].mT
    columns = torch.tensor([0]), torch.tensor([0, 1])
    found = find_tuples(solver(truth), CHAIN, *columns, 2, weights=[torch.zeros(5)] * 2)
    assert sorted(map(tuple, found.tolist())) == [(1, 3), (2, 4)]
    without = [torch.zeros(5), torch.tensor([0.0, 0.0, 0.0, 0.0, -torch.inf])]
    found = find_tuples(solver(truth), CHAIN, *columns, 1, weights=without)
    assert found.tolist() == [[1, 3]]
    (witnesses,) = find_witnesses(solver(truth), CHAIN, *columns, torch.tensor([[2, 4]]))
    assert witnesses == [Witness(*CHAIN.disjuncts, {ONE: 2, TWO: 4}, ())]


def test_certain_tuples_can_be_left_out():
    truth = DenseTruth.random(5, 2, {(0, 0, 1), (1, 1, 3)})
    columns = torch.tensor([0]), torch.tensor([0, 1])
    options = {"weights": [torch.zeros(5)] * 2}
    every = find_tuples(solver(truth), CHAIN, *columns, 25, **options)
    others = find_tuples(solver(truth), CHAIN, *columns, 25, **options, certain=False)
    assert [1, 3] in every.tolist()
    assert [1, 3] not in others.tolist()
    assert len(others) == len(every) - 1
