"""Exact answers: a formula becomes SQL, and DuckDB runs it for all queries of a pattern at once."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from lmpnn_kge.columns import Answers
from lmpnn_kge.errors import DatasetError, choices
from lmpnn_kge.libkge.dataset import SPLITS
from lmpnn_kge.query.normal import normalise
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.sql import compile_sql

Ints = npt.NDArray[np.integer[Any]]


class Database:
    """A graph in DuckDB, in memory. Relation r + R is the inverse of relation r.

    triples [n, 3] are numbers of heads, relations and tails, each triple once; level [n] is the
    number of the split it belongs to, and a split knows the edges of its own level and below.
    """

    def __init__(
        self, triples: Ints, level: Ints, entities: int, relations: int, threads: int | None = None
    ):
        self.entities = entities
        self.connection = duckdb.connect()
        if threads is not None:
            self.connection.execute(f"SET threads = {int(threads)}")
        s, p, o = triples.T
        both = {
            "s": np.concatenate([s, o]),
            "p": np.concatenate([p, p + relations]),
            "o": np.concatenate([o, s]),
            "level": np.concatenate([level, level]),
        }
        self._create("triples", both)
        self._create("entities", {"e": np.arange(entities)})

    def answer(
        self, pattern: Pattern, constants: Ints, relations: Ints, split: str = "test"
    ) -> Answers:
        """Answer the queries that fill a pattern's places with ids, [n, c] and [n, r]."""
        edges = f"SELECT s, p, o FROM triples WHERE level <= {_level(split)}"
        return self._run(pattern, constants, relations, edges, priced=False)

    def missing_edges(
        self, pattern: Pattern, constants: Ints, relations: Ints, observed: str, full: str
    ) -> Answers:
        """The answers on the full graph; costs say how many atoms need an unobserved edge."""
        edges = (
            f"SELECT s, p, o, (level > {_level(observed)})::INTEGER AS cost FROM triples "
            f"WHERE level <= {_level(full)}"
        )
        return self._run(pattern, constants, relations, edges, priced=True)

    def _run(
        self, pattern: Pattern, constants: Ints, relations: Ints, edges: str, *, priced: bool
    ) -> Answers:
        columns = {f"c{place}": column for place, column in enumerate(constants.T)}
        columns |= {f"r{place}": column for place, column in enumerate(relations.T)}
        self._create("queries", {"q": np.arange(len(constants)), **columns})
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW edges AS {edges}")
        found = self.connection.execute(sql(pattern, priced=priced)).fetchnumpy()
        entities = self.entities
        keys = found["q"].astype(np.int64) * entities + found["answer"]
        costs = None
        if priced:
            order = np.lexsort((found["cost"], keys))
            keys, costs = keys[order], found["cost"][order].astype(np.int32)
        else:
            keys.sort()
        first = np.ones(len(keys), bool)
        first[1:] = keys[1:] != keys[:-1]
        keys = keys[first]
        offsets = np.searchsorted(keys, np.arange(len(constants) + 1) * entities)
        owners = np.repeat(np.arange(len(constants)), np.diff(offsets))
        values = (keys - owners * entities).astype(np.int32)
        return Answers(offsets, values, None if costs is None else costs[first])

    def _create(self, table: str, columns: dict[str, Ints]) -> None:
        data = {name: np.ascontiguousarray(column, np.int32) for name, column in columns.items()}
        self.connection.register("incoming", data)
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM incoming")
        self.connection.unregister("incoming")


def sql(pattern: Pattern, *, priced: bool = False) -> str:
    """The statement that answers all queries of a pattern."""
    disjuncts = normalise(pattern.formula)
    return compile_sql(disjuncts, pattern.constants, pattern.relations, priced=priced)


def _level(split: str) -> int:
    if split not in SPLITS:
        raise DatasetError(f"there is no split {split!r}; {choices(split, SPLITS)}")
    return SPLITS.index(split)
