"""DuckDB as the engine, in this process.

Any number of threads can ask at the same time. All of them read the tables `entities` and
`triples`, which never change. The tables of a call are temporary: they belong to the session of
the call, and no other call sees them.
"""

from __future__ import annotations

import shutil
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb
import numpy as np

from lmpnn_kge.errors import QueryError
from lmpnn_kge.files import atomic_folder
from lmpnn_kge.graph.adjacency import Adjacency
from lmpnn_kge.graph.duckdb_files import reason, writing
from lmpnn_kge.graph.engine import Columns, Ints, Task
from lmpnn_kge.graph.follow import follow
from lmpnn_kge.graph.memory import memory_limit
from lmpnn_kge.graph.reach import reachable
from lmpnn_kge.graph.spill import spill_folder
from lmpnn_kge.work.deadline import check_time, interrupting
from lmpnn_kge.work.interrupts import interruptible
from lmpnn_kge.work.once import once
from lmpnn_kge.work.turns import passed

#: Relations that are listed in a statement.
FEW = 64

#: Edges of both directions that DuckDB reads faster than we look up those of many queries.
SMALL = 2_000_000

#: Queries that are written into a statement: faster than a table of them.
FEW_QUERIES = 16


class DuckDB:
    """A graph in memory, with an index of its edges. Large results go to a temporary folder.

    triples [n, 3] has every triple once, sorted; level [n] is the number of the split it belongs
    to. memory is a size such as "8GB", by default half of the machine's. DuckDB is started and gets
    the edges when a statement needs them; most single questions are answered from the index.
    """

    def __init__(
        self, triples: Ints, level: Ints, entities: int, relations: int, memory: str | None = None
    ):
        self.megabytes = memory_limit(memory)
        self.adjacency = Adjacency.of(triples, level, entities, relations)
        self._idle: deque[_Session] = deque()  # of calls that have ended; a deque has its own lock

    @once
    def connection(self) -> duckdb.DuckDBPyConnection:
        """To a database with the table `entities`."""
        connection = duckdb.connect()
        # We order the joins: DuckDB badly underestimates how many rows a join of many edges has.
        connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        connection.execute(f"SET memory_limit = '{self.megabytes}MB'")
        self._spill(connection)
        _Session(connection).create("TABLE entities", {"e": np.arange(self.adjacency.entities)})
        return connection

    @once
    def _triples(self) -> str:
        """The name of the table of all edges."""
        # DuckDB skips blocks that lack the relations of queries, because the edges are sorted.
        _Session(self.connection.cursor()).create("TABLE triples", self.adjacency.columns())
        return "triples"

    def _spill(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let large results go to a folder that is removed with this object."""
        cleanup = ExitStack()
        weakref.finalize(self, cleanup.close)
        folder = spill_folder(cleanup)
        connection.execute("SET temp_directory = $1", [str(folder or "")])
        if folder is not None:  # a formula can need any amount; it must not fill the disk
            most = shutil.disk_usage(folder).free // 2
            connection.execute(f"SET max_temp_directory_size = '{most}B'")

    @contextmanager
    def _session(self) -> Iterator[_Session]:
        """A session that no other call uses meanwhile."""
        try:
            session = self._idle.pop()
        except IndexError:
            session = _Session(self.connection.cursor())
        yield session
        self._idle.append(session)  # not after an error, which may leave something behind

    def run(self, task: Task) -> dict[str, Ints]:
        """The columns that a statement yields; QueryError if it needs too much memory or time."""
        if task.yields_answers and task.count <= FEW_QUERIES:
            found = follow(task, self.adjacency)
            if found is not None:
                return found
        with self._prepared(task) as (session, statement):
            return session.fetch(statement)

    def use_threads(self, count: int) -> None:
        """Let a statement take so many threads, if statements run side by side."""
        self.connection.execute(f"SET threads = {count}")

    def write(self, task: Task, folder: str) -> None:
        """Write the rows that a statement yields, each once, to a new folder of Parquet files."""
        with atomic_folder(Path(folder)) as aside, self._prepared(task) as (session, statement):
            file = str(aside / "part-00000.parquet").replace("'", "''")
            rows = f"SELECT DISTINCT * FROM ({statement})"
            with writing(Path(folder)):
                session.fetch(f"COPY ({rows}) TO '{file}' (FORMAT parquet)")

    @contextmanager
    def _prepared(self, task: Task) -> Iterator[tuple[_Session, str]]:
        """A session with the tables of a task, and the statement to run in it."""
        check_time()
        reached = self._reached(task)
        with self._session() as session:
            queries = ""
            if 0 < task.count <= FEW_QUERIES:
                queries = f"{_inline('queries', task.queries)}, "
            else:
                session.create("TEMP TABLE queries", task.queries)
            if reached is None:
                edges = task.edges(self._triples) + _among(task)
            else:
                session.create("TEMP TABLE reached", reached)
                edges = task.edges("reached")
            steps = task.statement.removeprefix("WITH ")
            try:
                yield session, f"WITH {queries}edges AS NOT MATERIALIZED ({edges}), {steps}"
            except duckdb.OutOfMemoryException as error:
                raise QueryError(
                    f"the formula needs more than {self.megabytes:,} MB of memory and half of the "
                    "free space for temporary files; simplify it, or allow more with --memory SIZE"
                ) from error
            except duckdb.IOException as error:
                raise QueryError(f"temporary files cannot be written: {reason(error)}") from error

    def _reached(self, task: Task) -> Columns | None:
        """The edges that matter to few queries or in a large graph; None if all should be read."""
        if len(self.adjacency) <= SMALL and task.count > FEW_QUERIES:
            return None
        return reachable(task.disjuncts, task.constants, task.relations, self.adjacency, task.level)


class _Session:
    """A connection to DuckDB, for one thread at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection):
        self.connection = connection
        self.run("SET enable_progress_bar = false")  # under `python -c`, it is drawn on stdout

    def run(self, statement: str) -> None:
        self.connection.execute(statement)

    def create(self, table: str, columns: Columns) -> None:
        """Create a table, or replace it."""
        data = {name: np.ascontiguousarray(column, np.int32) for name, column in columns.items()}
        self.connection.register("incoming", data)
        self.run(f"CREATE OR REPLACE {table} AS SELECT * FROM incoming")
        self.connection.unregister("incoming")

    def fetch(self, statement: str) -> dict[str, Ints]:
        """The columns that a statement yields; TimeLimitError if it takes too long."""
        check_time()
        try:
            interrupt = self.connection.interrupt
            with interrupting(interrupt), passed():
                return interruptible(
                    lambda: self.connection.execute(statement).fetchnumpy(), interrupt
                )
        except (duckdb.InterruptException, RuntimeError) as error:
            if "interrupted" not in str(error).lower():
                raise
            check_time()
            raise


def _inline(table: str, columns: Columns) -> str:
    """A table of whole numbers as a part of WITH."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    values = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
    return f"{table}({', '.join(columns)}) AS (VALUES {values})"


def _among(task: Task) -> str:
    """A condition that leaves only the edges of the queries' relations, if these are few.

    To answer what is not the case, DuckDB would otherwise hash all edges of the graph.
    """
    named = {int(r) for column in task.relations.values() for r in np.unique(column)}
    if len(named) > FEW:
        return ""
    return f" AND p IN ({', '.join(map(str, sorted(named))) or 'NULL'})"
