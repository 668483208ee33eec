"""Witnesses: the entities of the existential variables for which an answer is truest."""

from __future__ import annotations

import torch
from torch import Tensor

from lmpnn_kge.query.explain import Witness
from lmpnn_kge.query.formula import Term, Variable, connected_to
from lmpnn_kge.query.normal_form import Conjunct, scoped
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.search.logic import ALMOST, CERTAIN, IMPOSSIBLE
from lmpnn_kge.search.search import make_batch
from lmpnn_kge.search.solve import Batch, Solver


@torch.no_grad()
def find_witnesses(
    solver: Solver,
    pattern: Pattern,
    constants: Tensor,
    relations: Tensor,
    answers: Tensor,
    count: int = 1,
) -> list[list[Witness]]:
    """For each answer to a query [c] and [r], its best witnesses, the best one first.

    answers has rows of entities [n], or of tuples [n, k].

    Every answer has at least one. Further ones are left out if they cannot be true.
    """
    query = make_batch(pattern, constants[None], relations[None])
    found: list[list[tuple[float, Witness]]] = [[] for _ in answers]
    columns = answers.view(len(answers), len(pattern.free)).unbind(1)
    for disjunct in pattern.disjuncts:
        values: dict[Term, Tensor] = dict(zip(pattern.free, columns, strict=True))
        batch = query.at(torch.zeros_like(columns[0]), values)
        for owner, truth, witness in _search(solver, disjunct, batch, count):
            found[owner].append((truth, witness))
    best = (sorted(several, key=lambda pair: -pair[0])[:count] for several in found)
    return [
        [witness for place, (t, witness) in enumerate(several) if place == 0 or t > IMPOSSIBLE]
        for several in best
    ]


def _search(
    solver: Solver, disjunct: Conjunct, batch: Batch, count: int
) -> list[tuple[int, float, Witness]]:
    """The best assignments for each query of a batch that has the answers: query, log truth.

    Variables get their entities one by one, those near to the answer first, each by the truth that
    the conjunct has with it when the variables after it are eliminated.
    """
    size, owners = batch.size, torch.arange(batch.size, device=solver.truth.device)
    conjunct = scoped(disjunct)
    truth = solver.solve(conjunct, batch, None)[:, 0]
    for variable in _from_answer(conjunct):
        best = solver.solve(conjunct, batch, variable).topk(min(count, solver.num_entities))
        rows = torch.arange(len(owners), device=owners.device)
        rows = rows.repeat_interleave(best.values.shape[1])
        owners, truth, entities = owners[rows], best.values.flatten(), best.indices.flatten()
        kept = _best_of_each(owners, truth, size, count)
        owners, truth = owners[kept], truth[kept]
        batch = batch.at(rows[kept], {variable: entities[kept]})
    variables = (*conjunct.free, *conjunct.bound)
    rows_of_values = zip(*(batch.values[variable].tolist() for variable in variables), strict=True)
    paths = _paths(solver, conjunct, batch)
    return [
        (owner, value, Witness(disjunct, dict(zip(variables, values, strict=True)), chances))
        for owner, value, values, chances in zip(
            owners.tolist(), truth.tolist(), rows_of_values, paths, strict=True
        )
    ]


def _paths(solver: Solver, conjunct: Conjunct, batch: Batch) -> list[tuple[float, ...]]:
    """For each query, the truth of each path that is denied; 1 only if one path is certain."""
    columns = []
    for group in conjunct.groups:
        truth = solver.solve(group, batch, None)[:, 0]
        chance = truth.exp().clamp(max=ALMOST).masked_fill(truth > CERTAIN, 1.0)
        columns.append(chance.tolist())
    return list(zip(*columns, strict=True)) if columns else [()] * batch.size


def _best_of_each(owners: Tensor, truth: Tensor, size: int, count: int) -> Tensor:
    """The rows of the `count` truest assignments of each query."""
    order = truth.argsort(descending=True, stable=True)
    order = order[owners[order].argsort(stable=True)]
    counts = owners.bincount(minlength=size)
    first = counts.cumsum(0) - counts
    place = torch.arange(len(order), device=order.device) - first[owners[order]]
    return order[place < min(count, len(order))]


def _from_answer(conjunct: Conjunct) -> list[Variable]:
    """The variables that a conjunct binds, those that fewer conditions connect to ? first."""
    atoms = [literal.atom for literal in conjunct.literals]
    order: dict[Term, None] = dict.fromkeys(
        term for atom in connected_to(conjunct.free[0], atoms) for term in atom.terms
    )
    bound = [term for term in order if isinstance(term, Variable) and term in conjunct.bound]
    return [*bound, *(variable for variable in conjunct.bound if variable not in order)]
