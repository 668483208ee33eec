"""Valid queries as tensors, with their answers, for what is fitted on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.graph.answers import Answers, Int32s, Int64s
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import Pattern


@dataclass(frozen=True, eq=False)
class Questions:
    """Some queries of a pattern, and the entities that answer them."""

    pattern: Pattern
    constants: Tensor  # [n, c]
    relations: Tensor  # [n, r]
    hard: tuple[Tensor, Tensor]  # the query and the entity of each hard answer
    easy: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, queries: Queries, rows: Int64s, device: torch.device) -> Questions:
        def tensor(array: Int32s | Int64s) -> Tensor:
            return torch.from_numpy(array.astype(np.int64)).to(device)

        def answers(of: Answers) -> tuple[Tensor, Tensor]:
            owners, positions = of.places(rows)
            return tensor(owners), tensor(of.values[positions])

        return cls(
            queries.pattern,
            tensor(queries.constants[rows]),
            tensor(queries.relations[rows]),
            answers(queries.hard),
            answers(queries.easy),
        )

    def __len__(self) -> int:
        return len(self.constants)

    def masks(self, num_entities: int) -> tuple[Tensor, Tensor]:
        """The hard and the easy answers among all entities, [n, E] each."""
        shape = len(self), num_entities
        hard, easy = (
            torch.zeros(shape, dtype=torch.bool, device=self.constants.device) for _ in range(2)
        )
        hard[self.hard] = True
        easy[self.easy] = True
        return hard, easy

    @property
    def counts(self) -> Tensor:
        """The number of hard answers of each query, [n]."""
        return self.hard[0].bincount(minlength=len(self))

    @property
    def totals(self) -> Tensor:
        """The number of all answers of each query, [n]."""
        return self.counts + self.easy[0].bincount(minlength=len(self))


def in_batches(queries: Queries, size: int, device: torch.device, seed: int) -> Iterator[Questions]:
    """All queries in random order, `size` at a time."""
    rows = np.random.default_rng(seed).permutation(len(queries))
    for first in range(0, len(queries), size):
        yield Questions.of(queries, rows[first : first + size], device)


def listwise_loss(scores: Tensor, hard: Tensor, ignored: Tensor, counts: Tensor) -> Tensor:
    """−log of the share of each hard answer against all entities that are not answers.

    scores, hard and ignored are [n, c] for some entities of each query; counts is the number of
    hard answers of each query, over which the loss is averaged.
    """
    others = scores.masked_fill(hard | ignored, -torch.inf).logsumexp(1, keepdim=True)
    losses = torch.logaddexp(scores, others) - scores
    return (losses.masked_fill(~hard, 0.0).sum(1) / counts).mean()
