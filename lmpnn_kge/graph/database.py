"""Exact answers: DuckDB runs the SQL of a formula, for all queries of a pattern at once.

Any number of threads can ask at the same time. All of them read the tables `triples` and
`entities`, which never change. The table `queries` of a call is temporary: it belongs to the
session of the call, and no other call sees it.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from lmpnn_kge.deadline import check_time, seconds_left
from lmpnn_kge.errors import DatasetError, QueryError, choices
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.triples import SPLITS, both_directions
from lmpnn_kge.query.explain import Witness
from lmpnn_kge.query.formula import FREE
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.query.sql import pattern_sql, witness_sql

Ints = npt.NDArray[np.integer[Any]]


#: Combinations of entities that a statement may try if no edge limits them.
MAX_COMBINATIONS = 1e9

#: Memory for DuckDB; sampling a million queries of FB15k-237 needs far less.
MEMORY = "4GB"

#: Relations that are listed in a statement.
FEW = 64

#: Seconds between two attempts to stop a statement whose time is over.
STOPPING = 0.05


class Database:
    """A graph in DuckDB, in memory. Relation r + R is the inverse of relation r.

    triples [n, 3] has every triple once; level [n] is the number of the split it belongs to, and a
    split knows the edges of its own level and below.
    """

    def __init__(self, triples: Ints, level: Ints, entities: int, relations: int):
        self.entities = entities
        self.connection = duckdb.connect()
        # We order the joins: DuckDB badly underestimates how many rows a join of many edges has.
        self.connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        # A formula can need any amount of memory; one that needs too much must not fill the disk.
        self.connection.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = ''")
        s, p, o = both_directions(triples, relations).T
        by_relation = np.lexsort((s, p))  # DuckDB skips blocks that lack the relations of queries
        columns = {"s": s, "p": p, "o": o, "level": np.tile(level, 2)}
        tables = {
            "triples": {name: column[by_relation] for name, column in columns.items()},
            "entities": {"e": np.arange(entities)},
        }
        for name, columns in tables.items():
            _Session(self.connection).create(f"TABLE {name}", columns)
        self._idle: deque[_Session] = deque()  # of calls that have ended; a deque has its own lock

    @contextmanager
    def _session(self) -> Iterator[_Session]:
        """A session that no other call uses meanwhile."""
        try:
            session = self._idle.pop()
        except IndexError:
            session = _Session(self.connection.cursor())
        yield session
        self._idle.append(session)  # not after an error, which may leave something behind

    def answer(
        self, pattern: Pattern, constants: Ints, relations: Ints, split: str = "test"
    ) -> Answers:
        """Answer queries of a pattern, given by their constants [n, c] and relations [n, r]."""
        return self._run(pattern, constants, relations, _edges(split), priced=False)

    def missing_edges(
        self, pattern: Pattern, constants: Ints, relations: Ints, observed: str, full: str
    ) -> Answers:
        """The answers on the full graph, with the number of atoms that need an unobserved edge."""
        edges = (
            f"SELECT s, p, o, (level > {level_of(observed)})::INTEGER AS cost FROM triples "
            f"WHERE level <= {level_of(full)}"
        )
        return self._run(pattern, constants, relations, edges, priced=True)

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

        Answer [n] i answers the query that constants [n, c] and relations [n, r] have in row i. An
        entity that does not answer its query has no witness. The order is always the same.
        """
        disjuncts = normalise(pattern.formula)
        statement = witness_sql(
            disjuncts,
            pattern.constants,
            pattern.relations,
            limit=limit,
            max_ranging=self._max_ranging(len(answers)),
        )
        queries = np.concatenate([constants, answers[:, None]], axis=1)
        columns = self._execute(statement, queries, relations, _edges(split))
        witnesses: list[list[Witness]] = [[] for _ in answers]
        found = (columns[name].tolist() for name in ("q", "disjunct", "entities"))
        for query, number, entities in zip(*found, strict=True):
            if len(witnesses[query]) < limit:
                values = map(int, entities)
                bound = dict(zip(disjuncts[number].bound, values, strict=True))
                witness = Witness(disjuncts[number], {FREE: int(answers[query]), **bound})
                witnesses[query].append(witness)
        return witnesses

    def _run(
        self, pattern: Pattern, constants: Ints, relations: Ints, edges: str, *, priced: bool
    ) -> Answers:
        max_ranging = self._max_ranging(len(constants))
        statement = pattern_sql(pattern, priced=priced, max_ranging=max_ranging)
        found = self._execute(statement, constants, relations, edges)
        # Query and answer in one number: 32 bits sort twice as fast as 64.
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

    def _max_ranging(self, queries: int) -> int:
        """The number of variables that may range over all entities."""
        return int(math.log(MAX_COMBINATIONS / max(1, queries), max(2, self.entities)))

    def _execute(
        self, statement: str, constants: Ints, relations: Ints, edges: str
    ) -> dict[str, Ints]:
        """Run a statement over queries [n, c] and [n, r] and over the edges of a SELECT.

        If the queries have few relations, it sees only the edges of these. To answer what is not
        the case, DuckDB would otherwise hash all edges of the graph.
        """
        named = np.unique(relations).tolist()
        if len(named) <= FEW:
            edges += f" AND p IN ({', '.join(map(str, named)) or 'NULL'})"
        columns: dict[str, Ints] = {"q": np.arange(len(constants))}
        columns |= {f"c{place}": column for place, column in enumerate(constants.T)}
        columns |= {f"r{place}": column for place, column in enumerate(relations.T)}
        steps = statement.removeprefix("WITH ")
        with self._session() as session:
            session.create("TEMP TABLE queries", columns)
            return session.fetch(f"WITH edges AS NOT MATERIALIZED ({edges}), {steps}")


class _Session:
    """A connection to DuckDB, for one thread at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection):
        self.connection = connection
        self.run("SET enable_progress_bar = false")  # under `python -c`, it is drawn on stdout

    def run(self, statement: str) -> None:
        self.connection.execute(statement)

    def create(self, table: str, columns: dict[str, Ints]) -> None:
        """Create a table, or replace it."""
        data = {name: np.ascontiguousarray(column, np.int32) for name, column in columns.items()}
        self.connection.register("incoming", data)
        self.run(f"CREATE OR REPLACE {table} AS SELECT * FROM incoming")
        self.connection.unregister("incoming")

    def fetch(self, statement: str) -> dict[str, Ints]:
        """The columns that a statement yields; QueryError if it needs too much memory or time."""
        check_time()
        try:
            with self._stopped_in_time():
                return self.connection.execute(statement).fetchnumpy()
        except duckdb.OutOfMemoryException as error:
            raise QueryError(f"the formula needs more than {MEMORY} of memory") from error
        except (duckdb.InterruptException, RuntimeError) as error:
            if "interrupted" not in str(error).lower():
                raise
            check_time()
            raise KeyboardInterrupt from error  # as DuckDB reports Ctrl-C

    @contextmanager
    def _stopped_in_time(self) -> Iterator[None]:
        """Interrupt the statement that runs in this block when its time is over."""
        seconds = seconds_left()
        if seconds is None:
            yield
            return
        ended = threading.Event()

        def watch() -> None:
            wait: float = seconds
            # DuckDB ignores an interrupt between two statements, so one may not be enough.
            while not ended.wait(wait):
                self.connection.interrupt()
                wait = STOPPING

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()  # so that no interrupt hits the next statement of the session


def _edges(split: str) -> str:
    """A SELECT of the edges that a split knows."""
    return f"SELECT s, p, o FROM triples WHERE level <= {level_of(split)}"


def level_of(split: str) -> int:
    """The number of a split; it knows the edges of its own level and below."""
    if split not in SPLITS:
        raise DatasetError(f"there is no split {split!r}; {choices(split, SPLITS)}")
    return SPLITS.index(split)
