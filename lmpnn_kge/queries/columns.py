"""Queries as columns, not objects: a million queries are a handful of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmpnn_kge.graph.answers import Answers, Int32s, Int64s, Mask, split_answers
from lmpnn_kge.query.patterns import Pattern


@dataclass(frozen=True, eq=False)
class Queries:
    """All queries of one pattern in one split.

    A query gives values to the pattern's constants and relations, in the order of
    `Pattern.constants` and `Pattern.relations`. Easy answers follow from the observed graph; hard
    ones need an edge that is missing from it. Training queries have easy answers only. In a hard
    set, the easy answers that have a cost are hard ones that are not ranked.
    """

    pattern: Pattern
    constants: Int32s  # [n, c]
    relations: Int32s  # [n, r]; relation r + R is the inverse of r
    easy: Answers
    hard: Answers
    rows: Int64s | None = None  # their numbers among all of the pattern; None if these are all

    def __len__(self) -> int:
        return len(self.easy)

    @classmethod
    def none(cls, pattern: Pattern) -> Queries:
        """No queries of a pattern."""
        constants = np.zeros((0, len(pattern.constants)), np.int32)
        relations = np.zeros((0, len(pattern.relations)), np.int32)
        none = Answers.none(0, len(pattern.free))
        return cls(pattern, constants, relations, none, none)

    @classmethod
    def joined(cls, parts: Sequence[Queries]) -> Queries:
        """The queries of all parts, which share one pattern."""
        return cls(
            parts[0].pattern,
            np.concatenate([part.constants for part in parts]),
            np.concatenate([part.relations for part in parts]),
            Answers.joined([part.easy for part in parts]),
            Answers.joined([part.hard for part in parts]),
        )

    def select(self, queries: Mask) -> Queries:
        """The queries that a mask selects."""
        return Queries(
            self.pattern,
            self.constants[queries],
            self.relations[queries],
            self.easy.select(queries),
            self.hard.select(queries),
            self.numbers[queries],
        )

    @property
    def marginals(self) -> list[Queries]:
        """The same queries about each of their free variables alone.

        Its easy answers are the entities of easy tuples, and all others of hard tuples are hard.
        """
        if len(self.pattern.free) == 1:
            return [self]
        parts = []
        every = self.easy.merged(self.hard)
        for place, variable in enumerate(self.pattern.free):
            easy, hard = split_answers(every.at(place), self.easy.at(place))
            about = self.pattern.about(variable)
            parts.append(replace(self, pattern=about, easy=easy, hard=hard))
        return parts

    @property
    def numbers(self) -> Int64s:
        """The number of each query among all queries of the pattern in its split."""
        return np.arange(len(self)) if self.rows is None else self.rows

    @property
    def answered(self) -> Queries:
        """The queries with an easy answer, which training needs."""
        return self._having(self.easy)

    @property
    def ranked(self) -> Queries:
        """The queries with a hard answer, which evaluation ranks."""
        return self._having(self.hard)

    def _having(self, answers: Answers) -> Queries:
        having = answers.counts > 0
        return self if having.all() else self.select(having)
