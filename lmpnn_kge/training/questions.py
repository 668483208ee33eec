"""The triples of a graph as questions: every (head, relation) that has a tail, in both directions.

The content of a batch depends only on the seed, the epoch and its number, so that training can
resume anywhere. Processes that share the work draw the same batch, and each makes its own parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lmpnn_kge.device import moved_fields
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.triples import Triples, both_directions
from lmpnn_kge.processes import Processes, current
from lmpnn_kge.settings.kinds import PretrainSettings

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Questions:
    """The (head, relation) pairs of a graph, relations in [0, 2R), each with its tails."""

    heads: Int64s  # [n]
    relations: Int64s  # [n]
    tails: Answers

    @classmethod
    def of(cls, triples: Triples, num_relations: int) -> Questions:
        heads, relations, tails = both_directions(triples, num_relations).T
        rows = np.unique(np.stack([relations, heads, tails]), axis=1)  # sorted in this order
        is_new = np.ones(rows.shape[1], bool)
        is_new[1:] = (np.diff(rows[:2], axis=1) != 0).any(axis=0)
        offsets = np.append(is_new.nonzero()[0], len(is_new))
        return cls(rows[1, is_new], rows[0, is_new], Answers(offsets, rows[2].astype(np.int32)))

    def __len__(self) -> int:
        return len(self.heads)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some questions, and all their tails with the question that each belongs to.

    It is a whole batch or a part of one. A part for which no question is left repeats one with
    weights of 0.
    """

    heads: Tensor  # [n]
    relations: Tensor  # [n]
    offsets: list[int]  # [n + 1], where the tails of each question begin
    owners: Tensor  # [m]
    tails: Tensor  # [m]
    weights: Tensor  # [m], of the losses; their sum over the whole batch is 1
    negatives: Tensor | None  # [K], or None for all entities
    seed: int  # of dropout
    whole: int  # number of questions in the whole batch
    first: int  # the first of them in this part
    share: float  # of the tails of the whole batch

    def to(self, device: torch.device) -> Batch:
        """The batch on another device."""
        return replace(self, **moved_fields(self, device))


@dataclass(frozen=True, eq=False)
class QuestionInput:
    """The questions of a training graph, and how batches are drawn from them."""

    questions: Questions
    num_entities: int
    settings: PretrainSettings
    processes: Processes = field(default_factory=current)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return -(-len(self.questions) // self.settings.batch_size)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[list[Batch]]:
        """The batches of an epoch from a number on, in parts; every question comes once."""
        seed, size = self.settings.seed, self.settings.batch_size
        order = np.random.default_rng([seed, epoch]).permutation(len(self.questions))
        for number in range(start, len(self)):
            rows = order[number * size : (number + 1) * size]
            yield self._draw(rows, np.random.default_rng([seed, epoch, 1 + number]))

    def _draw(self, rows: Int64s, random: np.random.Generator) -> list[Batch]:
        questions, settings = self.questions, self.settings
        offsets = questions.tails.offsets
        counts = offsets[rows + 1] - offsets[rows]  # of these alone: there may be millions
        shares = 1 / counts if settings.loss == "kvsall" else np.ones(len(rows))
        shares /= shares @ counts
        negatives = None
        if 0 < settings.negatives < self.num_entities:
            drawn = random.choice(self.num_entities, settings.negatives, replace=False)
            negatives = torch.from_numpy(drawn)
        seed = int(random.integers(2**63))
        parts = []
        for span in self.processes.spans(len(rows), settings.parts):
            share = float(counts[span].sum() / counts.sum())
            part = span if share else slice(0, 1)
            owners, positions = questions.tails.places(rows[part])
            weights = shares[part][owners] if share else np.zeros(len(owners))
            parts.append(
                Batch(
                    torch.from_numpy(questions.heads[rows[part]]),
                    torch.from_numpy(questions.relations[rows[part]]),
                    [0, *np.cumsum(counts[part]).tolist()],
                    torch.from_numpy(owners),
                    torch.from_numpy(questions.tails.values[positions].astype(np.int64)),
                    torch.from_numpy(weights).float(),
                    negatives,
                    seed,
                    len(rows),
                    part.start,
                    share,
                )
            )
        return parts
