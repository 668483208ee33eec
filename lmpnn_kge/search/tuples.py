"""Tuples as answers: how true they are, and which are the truest.

Free variables get their entities one after the other, each by the truth that the formula has with
it when the variables after it are eliminated. Only the best partial tuples are continued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lmpnn_kge.query.formula import Term
from lmpnn_kge.query.normal_form import Conjunct, scoped
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.search.logic import CERTAIN
from lmpnn_kge.search.search import make_batch
from lmpnn_kge.search.solve import Batch, Solver

#: Partial tuples that are continued.
BEAM = 64


@torch.no_grad()
def tuple_truth(
    solver: Solver, pattern: Pattern, constants: Tensor, relations: Tensor, tuples: Tensor
) -> Tensor:
    """The log truth [m] of tuples [m, k] as answers to a query [c] and [r]."""
    query = make_batch(pattern, constants[None], relations[None])
    values: dict[Term, Tensor] = dict(zip(pattern.free, tuples.unbind(1), strict=True))
    batch = query.at(torch.zeros_like(tuples[:, 0]), values)
    disjuncts = map(scoped, pattern.disjuncts)
    return solver.logic.either([solver.solve(d, batch, None)[:, 0] for d in disjuncts])


@torch.no_grad()
def find_tuples(
    solver: Solver,
    pattern: Pattern,
    constants: Tensor,
    relations: Tensor,
    count: int,
    *,
    weights: Sequence[Tensor],
    certain: bool = True,
) -> Tensor:
    """About the `count` truest tuples of a query [c] and [r], in no order: [m, k], each once.

    weights has for each free variable a log weight [E] of every entity, such as −∞ for one that is
    out of the question. Without certain, tuples that follow from known edges are left out.
    """
    query = make_batch(pattern, constants[None], relations[None])
    found = [
        _extend(solver, disjunct, query, count, weights, certain=certain)
        for disjunct in map(scoped, pattern.disjuncts)
    ]
    return torch.cat(found).unique(dim=0)


def _extend(
    solver: Solver,
    conjunct: Conjunct,
    batch: Batch,
    count: int,
    weights: Sequence[Tensor],
    *,
    certain: bool,
) -> Tensor:
    """The truest tuples of a conjunct, found variable by variable."""
    free = conjunct.free
    weight = torch.zeros(1, device=solver.truth.device)  # of the partial tuples so far
    for place, variable in enumerate(free):
        later = free[place + 1 :]
        some = replace(conjunct, bound=(*conjunct.bound, *later))
        truth = solver.solve(some, batch, variable)  # [m, E]
        if not (later or certain):
            truth = truth.masked_fill(truth > CERTAIN, -torch.inf)
        weighted = truth + weight[:, None] + weights[place]
        most = max(count, BEAM) if later else count
        best = weighted.flatten().topk(min(most, weighted.numel()))
        chosen = best.indices[best.values > -torch.inf]
        if not len(chosen):
            return chosen.new_empty(0, len(free))
        rows, entities = chosen // weighted.shape[1], chosen % weighted.shape[1]
        weight = weight[rows] + weights[place][entities]
        batch = batch.at(rows, {variable: entities})
    return torch.stack([batch.values[variable] for variable in free], dim=1)
