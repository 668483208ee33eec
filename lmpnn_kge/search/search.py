"""Search as a way to answer queries: no training, only the truth of edges and fuzzy logic."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lmpnn_kge.methods.method import Scores
from lmpnn_kge.query.formula import FREE, Constant, Term
from lmpnn_kge.query.normal_form import scoped
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.search.solve import Batch, Part, Solver


@dataclass(frozen=True, eq=False)
class Search:
    """A `Method`: the score of an entity is the logarithm of its truth as an answer."""

    solver: Solver

    streamed = None

    @property
    def num_entities(self) -> int:
        return self.solver.num_entities

    @property
    def device(self) -> torch.device:
        return self.solver.truth.device

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """Scores of queries [n, c] and [n, r], searched for a few rows at a time."""

        @torch.no_grad()
        def scores(rows: slice, out: Tensor | None = None) -> Tensor:
            return self.truth(self.parts(pattern, constants[rows], relations[rows]))

        return scores

    def parts(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> list[list[Part]]:
        """The conditions on the answers of queries [n, c] and [n, r], for each disjunct."""
        batch = make_batch(pattern, constants, relations)
        disjuncts = map(scoped, pattern.disjuncts)
        return [self.solver.parts(disjunct, batch, FREE) for disjunct in disjuncts]

    def truth(self, disjuncts: list[list[Part]]) -> Tensor:
        """The log truth of every entity, [n, E]."""
        return self.solver.logic.either(self.truths(disjuncts))

    def truths(self, disjuncts: list[list[Part]]) -> list[Tensor]:
        """The log truth of every entity for each disjunct, [n, E] each."""
        every = self.solver.logic.every
        joined = (every([part.truth for part in parts]) for parts in disjuncts)
        return [truth.expand(-1, self.num_entities) for truth in joined]


def make_batch(pattern: Pattern, constants: Tensor, relations: Tensor) -> Batch:
    """Queries [n, c] and [n, r] of a pattern."""
    values: dict[Term, Tensor] = {
        Constant(name): constants[:, i] for i, name in enumerate(pattern.constants)
    }
    names = {name: relations[:, i] for i, name in enumerate(pattern.relations)}
    return Batch(len(constants), values, names)
