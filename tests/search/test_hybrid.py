"""Hybrid: certain answers first, then candidates in a learnt order, then all others."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmpnn_kge.query.formula import And, has_negation
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern, named_patterns
from lmpnn_kge.search import hybrid
from lmpnn_kge.search.hybrid import GAP, LOWEST, Hybrid
from lmpnn_kge.search.logic import Logic
from lmpnn_kge.search.rerank import Reranker

from .. import made_up
from ..formulas import ENTITIES, RELATIONS, brute_force, graphs
from .dense import DenseTruth
from .test_solve import VOCABULARY, any_formula, search
from .test_witness import can_be_read

MAX, NOISY = Logic("product", "max"), Logic("product", "noisy-or")

FORMULAS = [
    "r0(e0, ?) | r1(e1, ?)",
    "r0(e0, ?) & !(r1(?, ?x) & r0(?x, e1))",
    "r0(e0, ?) & ? != e1",
    "r0(e0, ?x) & r1(?x, ?) & ?x != ?",
    "r0(?, ?x)",
    "r0(e0, ?) & r1(?, ?x)",
    "r0(e0, ?x) & r1(?x, ?y) & r0(?y, ?) & r1(?x, ?)",
    "r0(?, ?x) & r1(?x, ?y) & r0(?y, ?)",
    "r0(e0, ?) & ? = e2",
    "!r0(e0, ?)",
    "r0(e0, e1) & r1(e0, ?)",
    "r0(?, ?)",
    "r0(e0, ?) & !r1(?x, ?) | r1(e1, ?x) & r0(?x, ?)",
]


def random_reranker(relations: int, seed: int = 0) -> Reranker:
    """An order that has nothing to do with that of search."""
    random = torch.Generator().manual_seed(seed)
    reranker = Reranker(relations)
    with torch.no_grad():
        for parameter in reranker.parameters():
            parameter.copy_(2 * torch.randn(parameter.shape, generator=random))
    return reranker


def columns(formula):
    pattern = Pattern(formula)
    return pattern, *(torch.from_numpy(ids)[None] for ids in VOCABULARY.resolve(pattern))


def scores_of(method, formula):
    return method.answer(*columns(formula))(slice(None))[0]


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("logic", [MAX, NOISY], ids=str)
def test_every_kind_of_formula_has_scores(text, logic):
    truth = DenseTruth.random(ENTITIES, RELATIONS, {(0, 0, 1), (1, 1, 2), (2, 0, 2)})
    scores = scores_of(Hybrid(search(truth, logic), random_reranker(RELATIONS)), parse(text))
    assert scores.shape == (ENTITIES,)
    assert scores.isfinite().all()


@given(any_formula, graphs, st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_certain_answers_come_first(formula, triples, seed):
    assume(can_be_read(formula) and not has_negation(formula))
    truth = DenseTruth.random(ENTITIES, RELATIONS, triples, seed=1)
    method = Hybrid(search(truth, MAX), random_reranker(RELATIONS, seed))
    known = set(brute_force(formula, triples))
    scores = scores_of(method, formula)
    assert {row for row in range(ENTITIES) if scores[row] > GAP + LOWEST} == known


@given(any_formula, graphs)
@settings(max_examples=60, deadline=None)
def test_a_network_that_has_learnt_nothing_keeps_the_order_of_search(formula, triples):
    """A union is an exception: search joins its parts by De Morgan, hybrid sums them."""
    assume(can_be_read(formula))
    assume(len(hybrid_disjuncts(formula)) == 1)
    truth = DenseTruth.random(ENTITIES, RELATIONS, triples)
    searching = search(truth, MAX)
    plain = scores_of(searching, formula).clamp(min=-LOWEST)  # what is impossible has no order
    found = scores_of(Hybrid(searching, Reranker(RELATIONS)), formula)
    truer = plain[:, None] > plain + 1e-3
    assert (found[:, None] > found)[truer].all()


def hybrid_disjuncts(formula):
    pattern, constants, relations = columns(formula)
    truth = DenseTruth.random(ENTITIES, RELATIONS)
    return search(truth, MAX).parts(pattern, constants, relations)


@pytest.mark.parametrize("condition", ["!r0(e1, ?)", "? = e2", "? != e0"])
@given(any_formula, graphs, st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_what_cannot_be_an_answer_comes_last(condition, formula, triples, seed):
    formula = And((formula, parse(condition)))
    assume(can_be_read(formula))
    truth = DenseTruth.random(ENTITIES, RELATIONS, {*triples, (1, 0, 2)})
    searching = search(truth, MAX)
    plain = scores_of(searching, formula)
    found = scores_of(Hybrid(searching, random_reranker(RELATIONS, seed)), formula)
    impossible = plain < -60
    assume(impossible.any() and not impossible.all())
    assert found[impossible].max() < found[~impossible].min()


@pytest.mark.parametrize("most", [1, 3, 5])
def test_only_the_best_entities_are_put_in_another_order(monkeypatch, most):
    monkeypatch.setattr(hybrid, "CANDIDATES", most)
    entities = 12
    truth = DenseTruth.random(entities, 2, {(0, 0, 1), (3, 0, 4)})
    searching = search(truth, NOISY)
    method = Hybrid(searching, random_reranker(2))
    drawn = made_up.queries(named_patterns()["2p"], 9, entities, 2)
    ids = [torch.from_numpy(column).long() for column in (drawn.constants, drawn.relations)]
    plain = searching.answer(drawn.pattern, *ids)(slice(None))
    found = method.answer(drawn.pattern, *ids)(slice(None))
    for row in range(9):
        best = set(plain[row].topk(most).indices.tolist())
        assert set(found[row].topk(most).indices.tolist()) == best
        others = torch.tensor([entity for entity in range(entities) if entity not in best])
        assert torch.equal(found[row, others], plain[row, others])


def test_rows_by_themselves_have_the_scores_of_all_rows():
    truth = DenseTruth.random(8, 2, {(0, 0, 1)})
    method = Hybrid(search(truth, NOISY), random_reranker(2))
    for pattern in made_up.patterns("2f-m", "2f-cn").values():
        drawn = made_up.queries(pattern, 5, 8, 2)
        ids = [torch.from_numpy(column).long() for column in (drawn.constants, drawn.relations)]
        answer = method.answer(pattern, *ids)
        parts = torch.cat([answer(slice(0, 2)), answer(slice(2, 5))])
        assert torch.allclose(parts, answer(slice(None)), atol=1e-3)


def test_scores_too_large_for_the_gap_are_cut():
    reranker = random_reranker(RELATIONS)
    with torch.no_grad():
        reranker.slopes.fill_(1e6)
    truth = DenseTruth.random(ENTITIES, RELATIONS, {(0, 0, 1)})
    scores = scores_of(Hybrid(search(truth, MAX), reranker), parse("r0(e0, ?)"))
    assert scores.argmax() == 1
    assert scores.min() >= GAP - LOWEST
