"""The vectors of queries of different patterns, scored by one product with the same entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of n queries, one for each of their disjuncts."""

    stacked: Tensor  # [m, d]: the first vectors of all queries, the second ones of some, …
    owners: tuple[Tensor, ...]  # the queries that have a second vector, a third, …

    @classmethod
    def of(cls, parts: Sequence[Tensor]) -> Vectors:
        """The vectors of queries [disjuncts, n, d] of some patterns, in this order."""
        first = torch.cat([part[0] for part in parts])
        numbers = torch.arange(len(first), device=first.device)
        queries = numbers.split([part.shape[1] for part in parts])
        others, owners = [], []
        for disjunct in range(1, max(map(len, parts))):
            having = [pair for pair in zip(queries, parts, strict=True) if len(pair[1]) > disjunct]
            owners.append(torch.cat([own for own, _ in having]))
            others += [part[disjunct] for _, part in having]
        return cls(torch.cat([first, *others]), tuple(owners))

    def __len__(self) -> int:
        return len(self.stacked) - sum(map(len, self.owners))

    def of_query(self, query: int) -> Vectors:
        """The vectors of one query."""
        every = [torch.arange(len(self), device=self.stacked.device), *self.owners]
        own = self.stacked[torch.cat(every) == query]
        return Vectors.of([own[:, None]])

    def ordered(self, order: Tensor) -> Vectors:
        """The same queries in another order [n]."""
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order), device=order.device)
        first, others = self.stacked[: len(self)], self.stacked[len(self) :]
        owners = tuple(places[queries] for queries in self.owners)
        return Vectors(torch.cat([first[order], others]), owners)

    def scores(self, entities: Tensor, buffer: Tensor | None = None) -> Tensor:
        """The scores of entities [e, d], that of the best disjunct each: [n, e].

        buffer is memory [m, e] that is written to instead of new memory.
        """
        products = torch.mm(self.stacked, entities.T, out=buffer)
        scores, *others = products.split([len(self), *map(len, self.owners)])
        for queries, other in zip(self.owners, others, strict=True):
            scores[queries] = torch.maximum(scores[queries], other)
        return scores
