"""Exact answers: an engine runs the SQL of a formula, for all queries of a pattern at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmpnn_kge.errors import DatasetError, choices
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.engine import Engine, Ints, Task
from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.query.explain import Witness
from lmpnn_kge.query.normal_form import substitute
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.query.sql import answer_column, answer_constants, pattern_sql, witness_sql
from lmpnn_kge.work.turns import turn

#: Combinations of entities that a statement may try if no edge limits them.
MAX_COMBINATIONS = 1e9

#: More answers than there can be, in a number that every engine takes.
MAX_LIMIT = 2**62


@dataclass(frozen=True, eq=False)
class Database:
    """A graph that an engine keeps. Any number of threads can ask at the same time."""

    engine: Engine
    entities: int

    def answer(
        self,
        pattern: Pattern,
        constants: Ints,
        relations: Ints,
        split: str = "test",
        limit: int | None = None,
    ) -> Answers:
        """Answer queries of a pattern, given by their constants [n, c] and relations [n, r].

        limit is the largest number of answers of each query that are kept, if they are tuples.
        """
        if len(pattern.free) == 1:  # no more than there are entities
            limit = None
        most = None if limit is None else min(limit, MAX_LIMIT)
        return self._run(pattern, constants, relations, level_of(split), None, most)

    def write_answers(
        self,
        pattern: Pattern,
        constants: Ints,
        relations: Ints,
        folder: str,
        split: str = "test",
    ) -> None:
        """The same answers as Parquet files in a new folder: the number of the query q, answer.

        Tuples are in the columns answer1, answer2, ….
        """
        self.engine.write(self._task(pattern, constants, relations, level_of(split), None), folder)

    def missing_edges(
        self, pattern: Pattern, constants: Ints, relations: Ints, observed: str, full: str
    ) -> Answers:
        """The answers on the full graph, with the number of atoms that need an unobserved edge."""
        return self._run(pattern, constants, relations, level_of(full), level_of(observed))

    @turn()
    def witnesses(
        self,
        pattern: Pattern,
        constants: Ints,
        relations: Ints,
        answers: Ints,
        split: str = "train",
        limit: int = 1,
    ) -> list[list[Witness]]:
        """Up to `limit` witnesses for each of n answers, by the edges of a split.

        Answer [n] i, or [n, k] of tuples, answers the query that constants [n, c] and relations
        [n, r] have in row i. What does not answer its query has no witness. The order is always
        the same.
        """
        disjuncts, free = pattern.disjuncts, pattern.free
        columns_of_answers = answers.reshape(len(answers), len(free)).T
        statement = witness_sql(
            disjuncts,
            pattern.constants,
            pattern.relations,
            limit=min(limit, MAX_LIMIT),
            max_ranging=self._max_ranging(len(answers)),
        )
        places = answer_constants(pattern.constants, free)
        given = {c.name: a for c, a in zip(places.values(), columns_of_answers, strict=True)}
        columns = self.engine.run(
            Task(
                statement,
                [substitute(disjunct, places) for disjunct in disjuncts],
                len(answers),
                {**_named(pattern.constants, constants), **given},
                _named(pattern.relations, relations),
                level_of(split),
            )
        )
        witnesses: list[list[Witness]] = [[] for _ in answers]
        found = (columns[name].tolist() for name in ("q", "disjunct", "entities"))
        for query, number, entities in zip(*found, strict=True):
            if len(witnesses[query]) < limit:
                variables = (*free, *disjuncts[number].bound)
                values = map(int, (*columns_of_answers[:, query], *entities))
                witness = Witness(disjuncts[number], dict(zip(variables, values, strict=True)))
                witnesses[query].append(witness)
        return witnesses

    @turn()
    def _run(
        self,
        pattern: Pattern,
        constants: Ints,
        relations: Ints,
        level: int,
        observed: int | None,
        limit: int | None = None,
    ) -> Answers:
        found = self.engine.run(self._task(pattern, constants, relations, level, observed, limit))
        if len(pattern.free) > 1:
            return _tuples(found, pattern, len(constants))
        # Query and answer in one number: 32 bits sort twice as fast as 64.
        width = np.int32 if len(constants) * self.entities < 2**31 else np.int64
        keys = found["q"].astype(width) * width(self.entities) + found["answer"]
        costs = None
        if observed is not None:
            order = np.lexsort((found["cost"], keys))
            keys, costs = keys[order], found["cost"][order].astype(np.int32)
        else:
            keys.sort()
        first = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        keys = keys[first]
        offsets = np.searchsorted(keys, np.arange(len(constants) + 1) * self.entities)
        values = (keys % self.entities).astype(np.int32)
        return Answers(offsets, values, None if costs is None else costs[first])

    def _task(
        self,
        pattern: Pattern,
        constants: Ints,
        relations: Ints,
        level: int,
        observed: int | None,
        limit: int | None = None,
    ) -> Task:
        statement = pattern_sql(
            pattern,
            priced=observed is not None,
            max_ranging=self._max_ranging(len(constants)),
            limit=limit,
        )
        return Task(
            statement,
            pattern.disjuncts,
            len(constants),
            _named(pattern.constants, constants),
            _named(pattern.relations, relations),
            level,
            observed,
            yields_answers=len(pattern.free) == 1,
        )

    def _max_ranging(self, queries: int) -> int:
        """The number of variables that may range over all entities."""
        return int(math.log(MAX_COMBINATIONS / max(1, queries), max(2, self.entities)))


def _tuples(found: dict[str, Ints], pattern: Pattern, queries: int) -> Answers:
    """The rows of a statement as answers that are tuples, each once, with its least cost."""
    columns = [found["q"], *(found[answer_column(variable)] for variable in pattern.free)]
    costs = found.get("cost")
    order = np.lexsort((*([] if costs is None else [costs]), *columns[::-1]))
    rows = np.stack(columns, axis=1)[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    rows = rows[first]
    offsets = np.searchsorted(rows[:, 0], np.arange(queries + 1))
    kept = None if costs is None else costs[order][first].astype(np.int32)
    return Answers(offsets, rows[:, 1:].astype(np.int32), kept)


def _named(names: Sequence[str], columns: Ints) -> dict[str, Ints]:
    """Columns [n, k] by name."""
    return dict(zip(names, columns.T, strict=True))


def level_of(split: str) -> int:
    """The number of a split; it knows the edges of its own level and below."""
    if split not in SPLITS:
        raise DatasetError(f"there is no split {split!r}; {choices(split, SPLITS)}")
    return SPLITS.index(split)
