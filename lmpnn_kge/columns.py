"""Queries as columns, not objects: a million of them are a handful of arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmpnn_kge.query.patterns import Pattern

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


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

    @classmethod
    def none(cls, queries: int) -> Answers:
        return cls(np.zeros(queries + 1, np.int64), np.zeros(0, np.int32))


@dataclass(frozen=True, eq=False)
class Queries:
    """All queries of one pattern in one split.

    A query fills the pattern's places, in the order of `Pattern.constants` and `.relations`. Easy
    answers follow from the observed graph; hard ones need an edge that is missing from it. Training
    queries have easy answers only.
    """

    pattern: Pattern
    constants: Int32s  # [n, c]
    relations: Int32s  # [n, r]
    easy: Answers
    hard: Answers

    def __len__(self) -> int:
        return len(self.easy)
