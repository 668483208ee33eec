"""Answers as columns: the answers of a million queries are two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Tuples that a formula may have as answers, unless a limit is given.
MAX_TUPLES = 1_000_000


class TupleRows(NamedTuple):
    """Answers of one formula, and whether these are all."""

    rows: Int64s  # [m, k]
    complete: bool


@dataclass(frozen=True, eq=False)
class Answers:
    """Sorted entities for each of n queries: those of query i are values[offsets[i]:offsets[i+1]].

    The answers of queries with k > 1 free variables are tuples of k entities. costs, if known, has
    for each value the number of missing edges that its cheapest witness needs.
    """

    offsets: Int64s  # [n + 1]
    values: Int32s  # [m], or [m, k] of tuples
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

    def at(self, place: int) -> Answers:
        """The entities at one place of the tuples, each once for each query."""
        entities = self.values[:, place].astype(np.int64)
        width = int(entities.max(initial=0)) + 1
        owners, distinct = np.divmod(np.unique(self.owners * width + entities), width)
        counts = np.bincount(owners, minlength=len(self))
        return Answers(_offsets(counts), distinct.astype(np.int32))

    def mask(self, entities: int) -> Mask:
        """Whether each of so many entities answers each query, [n, E]."""
        mask = np.zeros((len(self), entities), bool)
        mask[self.owners, self.values] = True
        return mask

    def places(self, queries: Int64s) -> tuple[Int64s, Int64s]:
        """All answers of some queries: for each, the index of its query and its position."""
        first = self.offsets[queries]
        return spread(first, self.offsets[queries + 1] - first)

    @classmethod
    def none(cls, queries: int, arity: int = 1) -> Answers:
        """No answers of queries with so many free variables."""
        shape = (0,) if arity == 1 else (0, arity)
        return cls(np.zeros(queries + 1, np.int64), np.zeros(shape, np.int32))

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """The answers of all queries of all parts, with costs if all have them."""
        offsets = _offsets(np.concatenate([part.counts for part in parts]))
        costs = [part.costs for part in parts if part.costs is not None]
        priced = costs and all(part.costs is not None for part in parts if len(part.values))
        return cls(
            offsets,
            np.concatenate([part.values for part in parts]),
            np.concatenate(costs) if priced else None,
        )

    def merged(self, other: Answers) -> Answers:
        """The answers of the same queries here and in others, which share none."""
        owners = np.concatenate([self.owners, other.owners])
        values = np.concatenate([self.values, other.values])
        order = answer_order(owners, values)
        costs = None
        if self.costs is not None and other.costs is not None:
            costs = np.concatenate([self.costs, other.costs])[order]
        return Answers(_offsets(self.counts + other.counts), values[order], costs)

    def only(self, values: Mask) -> Answers:
        """The answers with only the values that a mask selects."""
        kept = np.concatenate([[0], np.cumsum(values)]).astype(np.int64)
        costs = None if self.costs is None else self.costs[values]
        return Answers(kept[self.offsets], self.values[values], costs)

    def select(self, queries: Mask) -> Answers:
        """The answers of the queries that a mask selects."""
        kept = self.only(np.repeat(queries, self.counts))
        return Answers(_offsets(self.counts[queries]), kept.values, kept.costs)


def answer_order(owners: Int64s, values: Int32s) -> Int64s:
    """The order in which answers are sorted: by their query, then by their first entity."""
    keys = values[None] if values.ndim == 1 else values.T[::-1]  # the last key counts most
    return np.lexsort((*keys, owners))


def split_answers(full: Answers, observed: Answers) -> tuple[Answers, Answers]:
    """The easy answers, which the observed graph gives as well, and the hard ones."""
    # Query and answer in one number. Where both lists ascend, a binary search finds each key.
    keys, known = _keys(full, observed)
    position = np.minimum(np.searchsorted(known, keys), max(0, len(known) - 1))
    is_known = known[position] == keys if len(known) else np.zeros(len(keys), bool)
    return full.only(is_known), full.only(~is_known)


def _keys(*answers: Answers) -> list[Int64s]:
    """A number for each query and answer, the same for equal ones, in ascending order."""
    columns = [np.atleast_2d(each.values.T) for each in answers]  # [k, m]
    keys = [each.owners for each in answers]
    for parts in zip(*columns, strict=True):
        width = 1 + max(int(part.max(initial=0)) for part in parts)
        keys = [own * width + part for own, part in zip(keys, parts, strict=True)]
        # Numbers by rank stay small, however many entities a tuple has.
        if len(columns[0]) > 1:
            ranked = np.unique(np.concatenate(keys), return_inverse=True)[1]
            keys = np.split(ranked, [len(keys[0])])
    return keys


def spread(first: Int64s, count: Int64s) -> tuple[Int64s, Int64s]:
    """For ranges of given starts and lengths: the range and the position of each member."""
    runs = np.repeat(np.arange(len(first)), count)
    starts = np.cumsum(count) - count
    return runs, np.arange(len(runs)) - starts[runs] + first[runs]


def _offsets(counts: Int64s) -> Int64s:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
