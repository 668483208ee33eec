"""Queries as columns, not objects: a million of them are a handful of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmpnn_kge.query.patterns import Pattern

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Answers:
    """Sorted entities for each of n queries: those of query i are values[offsets[i]:offsets[i+1]].

    costs, where present, goes with values: how many missing edges the cheapest witness needs.
    """

    offsets: Int64s  # [n + 1]
    values: Int32s
    costs: Int32s | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, query: int) -> Int32s:
        return self.values[self.offsets[query] : self.offsets[query + 1]]

    @property
    def counts(self) -> Int64s:
        return np.diff(self.offsets)

    @property
    def owners(self) -> Int64s:
        """The query that each value answers."""
        return np.repeat(np.arange(len(self)), self.counts)

    def places(self, queries: Int64s) -> tuple[Int64s, Int64s]:
        """For some queries, of all their answers: which of them has it, its place in values."""
        first = self.offsets[queries]
        return spread(first, self.offsets[queries + 1] - first)

    @classmethod
    def none(cls, queries: int) -> Answers:
        return cls(np.zeros(queries + 1, np.int64), np.zeros(0, np.int32))

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """The answers of the queries of all parts."""
        offsets = _offsets(np.concatenate([part.counts for part in parts]))
        costs = [part.costs for part in parts if part.costs is not None]
        return cls(
            offsets,
            np.concatenate([part.values for part in parts]),
            np.concatenate(costs) if len(costs) == len(parts) else None,
        )

    def only(self, values: Mask) -> Answers:
        """Some of the values of every query."""
        kept = np.concatenate([[0], np.cumsum(values)]).astype(np.int64)
        costs = None if self.costs is None else self.costs[values]
        return Answers(kept[self.offsets], self.values[values], costs)

    def select(self, queries: Mask) -> Answers:
        """Some of the queries."""
        kept = self.only(np.repeat(queries, self.counts))
        return Answers(_offsets(self.counts[queries]), kept.values, kept.costs)


def spread(first: Int64s, count: Int64s) -> tuple[Int64s, Int64s]:
    """For runs of given first places and lengths: the run and the place of each member."""
    runs = np.repeat(np.arange(len(first)), count)
    starts = np.cumsum(count) - count
    return runs, np.arange(len(runs)) - starts[runs] + first[runs]


def _offsets(counts: Int64s) -> Int64s:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Queries:
    """All queries of one pattern in one split.

    A query fills the pattern's places, in the order of `Pattern.constants` and `.relations`. Easy
    answers follow from the observed graph; hard ones need an edge that is missing from it. Training
    queries have easy answers only.
    """

    pattern: Pattern
    constants: Int32s  # [n, c]
    relations: Int32s  # [n, r]; relation r + R is the inverse of r
    easy: Answers
    hard: Answers

    def __len__(self) -> int:
        return len(self.easy)

    @classmethod
    def joined(cls, parts: Sequence[Queries]) -> Queries:
        """The queries of all parts, which have one pattern."""
        return cls(
            parts[0].pattern,
            np.concatenate([part.constants for part in parts]),
            np.concatenate([part.relations for part in parts]),
            Answers.joined([part.easy for part in parts]),
            Answers.joined([part.hard for part in parts]),
        )

    def select(self, queries: Mask) -> Queries:
        """Some of the queries."""
        return Queries(
            self.pattern,
            self.constants[queries],
            self.relations[queries],
            self.easy.select(queries),
            self.hard.select(queries),
        )

    @property
    def answered(self) -> Queries:
        """Those that have an easy answer, which is what training needs."""
        return self._having(self.easy)

    @property
    def ranked(self) -> Queries:
        """Those that have a hard answer, which is what evaluation ranks."""
        return self._having(self.hard)

    def _having(self, answers: Answers) -> Queries:
        having = answers.counts > 0
        return self if having.all() else self.select(having)
