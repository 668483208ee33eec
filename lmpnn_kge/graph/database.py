"""Exact answers: a formula becomes SQL, and DuckDB runs it for all queries of a pattern at once."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, QueryError, choices
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.formats.libkge import SPLITS
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.query.sql import compile_sql

Ints = npt.NDArray[np.integer[Any]]


#: Combinations of entities that a statement may go through where no edge limits them.
MAX_COMBINATIONS = 1e9

#: What DuckDB may use; sampling a million queries of FB15k-237 does not come near it.
MEMORY = "4GB"


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
        # The order of joins is ours: DuckDB takes what a join makes of many edges for a few rows.
        self.connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        # A formula can ask for anything; one that asks for too much must not take the disk instead.
        self.connection.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = ''")
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
        max_ranging = int(
            math.log(MAX_COMBINATIONS / max(1, len(constants)), max(2, self.entities))
        )
        statement = sql(pattern, priced=priced, max_ranging=max_ranging)
        try:
            found = self.connection.execute(statement).fetchnumpy()
        except duckdb.OutOfMemoryException as error:
            raise QueryError(f"the formula has too many combinations for {MEMORY}") from error
        except (duckdb.InterruptException, RuntimeError) as error:
            if "interrupted" not in str(error).lower():  # DuckDB's word for Ctrl-C
                raise
            raise KeyboardInterrupt from error
        # Query and answer in one number; half as wide, it sorts twice as fast.
        width = np.int32 if len(constants) * self.entities < 2**31 else np.int64
        keys = found["q"].astype(width) * width(self.entities) + found["answer"]
        costs = None
        if priced:
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

    def _create(self, table: str, columns: dict[str, Ints]) -> None:
        data = {name: np.ascontiguousarray(column, np.int32) for name, column in columns.items()}
        self.connection.register("incoming", data)
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM incoming")
        self.connection.unregister("incoming")


def sql(pattern: Pattern, *, priced: bool = False, max_ranging: int | None = None) -> str:
    """The statement that answers all queries of a pattern."""
    return compile_sql(
        normalise(pattern.formula),
        pattern.constants,
        pattern.relations,
        priced=priced,
        max_ranging=max_ranging,
    )


def _level(split: str) -> int:
    if split not in SPLITS:
        raise DatasetError(f"there is no split {split!r}; {choices(split, SPLITS)}")
    return SPLITS.index(split)
