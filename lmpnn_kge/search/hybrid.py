"""Hybrid: search with what was learnt on valid queries.

Search finds the truth of every entity, with weights for each relation. A small network then puts
its best entities in order, by the truth of each condition.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lmpnn_kge.methods.method import Scores
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.search.logic import CERTAIN, IMPOSSIBLE
from lmpnn_kge.search.rerank import Candidates, Reranker, gather_candidates
from lmpnn_kge.search.search import Search
from lmpnn_kge.search.solve import Solver

#: Entities of each query that are put in order.
CANDIDATES = 256

#: What sets the scores of candidates apart from those of all others; the least score is -LOWEST.
#: Larger numbers would be rounded more.
GAP, LOWEST = 256.0, 120.0


@dataclass(frozen=True, eq=False)
class Hybrid:
    """A `Method`: the best answers of search in a learnt order.

    Entities that are certain come before the candidates, all others after them. If there are few
    entities, candidates that cannot be answers come last.
    """

    search: Search
    reranker: Reranker

    streamed = None

    @property
    def solver(self) -> Solver:
        return self.search.solver

    @property
    def num_entities(self) -> int:
        return self.search.num_entities

    @property
    def device(self) -> torch.device:
        return self.search.device

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """Scores of queries [n, c] and [n, r], searched for a few rows at a time."""

        @torch.no_grad()
        def scores(rows: slice, out: Tensor | None = None) -> Tensor:
            candidates, certain, truth = find_candidates(
                self.search, pattern, constants[rows], relations[rows]
            )
            by_truth = truth + 2 * GAP * certain
            order = GAP + self.reranker(candidates).clamp(-LOWEST, LOWEST)
            best = candidates.entities  # these are among them if there are few entities
            settled = certain.gather(1, best) | (candidates.truth < IMPOSSIBLE)
            return by_truth.scatter(1, best, torch.where(settled, by_truth.gather(1, best), order))

        return scores


def find_candidates(
    search: Search, pattern: Pattern, constants: Tensor, relations: Tensor
) -> tuple[Candidates, Tensor, Tensor]:
    """The best entities of queries that are not certain, which are certain, and all log truths."""
    disjuncts = search.parts(pattern, constants, relations)
    truths = search.truths(disjuncts)
    truth = search.solver.logic.either(truths).clamp(min=-LOWEST)
    # Two disjuncts that are nearly certain are not certain together.
    certain = torch.stack([each > CERTAIN for each in truths]).any(0)
    best = truth.masked_fill(certain, -torch.inf).topk(min(CANDIDATES, search.num_entities)).indices
    facts = search.solver.truth.facts
    return gather_candidates(disjuncts, truth, best, facts), certain, truth
