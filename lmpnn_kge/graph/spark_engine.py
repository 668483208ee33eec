"""Spark as the engine, for graphs that outgrow a machine: local, on a cluster or remote.

It reads the edges from Parquet files. Any number of threads can ask at the same time: the tables of
a call have names of their own.
"""

from __future__ import annotations

import secrets
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lmpnn_kge.errors import DatasetError, LmpnnError, QueryError, one_line
from lmpnn_kge.graph.engine import Columns, EngineOptions, Ints, Task
from lmpnn_kge.graph.memory import memory_limit
from lmpnn_kge.graph.parquet import write_edges
from lmpnn_kge.graph.spill import spill_folder
from lmpnn_kge.work.deadline import check_time, interrupting
from lmpnn_kge.work.turns import passed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Where Spark runs by default: in threads of this process's machine.
LOCAL = "local[*]"

#: Parts into which Spark divides the tables of a statement on one machine.
PARTS = 4

#: Seconds between two attempts to stop a statement whose time is over.
STOPPING = 0.5


class Spark:
    """A graph in Parquet files: the edges of both directions, with columns s, p, o and level."""

    def __init__(
        self, edges: str, entities: int, master: str | None = None, memory: str | None = None
    ):
        self.session = connect(master or LOCAL, memory)
        self.remote = is_remote(master or LOCAL)
        self._views = {name: f"{name}_{secrets.token_hex(8)}" for name in ("triples", "entities")}
        triples = self.session.read.parquet(edges)
        triples.cache().createTempView(self._views["triples"])
        entity = self.session.range(entities).selectExpr("CAST(id AS INT) AS e")
        entity.createTempView(self._views["entities"])

    @classmethod
    def of(
        cls,
        triples: Ints,
        level: Ints,
        entities: int,
        relations: int,
        options: EngineOptions,
    ) -> Spark:
        """Write the edges to a folder, or to a temporary one, and read them.

        A location such as s3://bucket/edges must already have the files.
        """
        cleanup, parquet = ExitStack(), options.parquet
        if parquet is None:
            temporary = spill_folder(cleanup)
            if temporary is None:
                raise DatasetError(
                    f"{tempfile.gettempdir()} cannot be written; give another folder for the edges "
                    "with --parquet DIR"
                )
            parquet = str(temporary / "edges")
        if "://" not in parquet:
            write_edges(Path(parquet), triples, level, entities, relations)
        engine = cls(parquet, entities, options.master, options.memory)
        weakref.finalize(engine, cleanup.close)
        return engine

    def run(self, task: Task) -> dict[str, Ints]:
        """The columns that a statement yields; QueryError if Spark fails or needs too long."""
        with self._frame(task) as frame:
            table = frame.toArrow()
        return {name: table[name].to_numpy() for name in table.column_names}

    def use_threads(self, count: int) -> None:
        """Nothing: the master of the session says how many threads there are."""

    def write(self, task: Task, folder: str) -> None:
        """Write what a statement yields as Parquet files, which never pass through this process."""
        with self._frame(task) as frame:
            frame.distinct().write.parquet(folder)

    @contextmanager
    def _frame(self, task: Task) -> Iterator[DataFrame]:
        """The result of a statement, which Spark computes when the block reads it."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from lmpnn_kge.graph.spark_sql import to_spark

        check_time()
        tag = f"q{secrets.token_hex(8)}"
        views = {**self._views, "queries": f"queries_{tag}"}
        steps = task.statement.removeprefix("WITH ")
        statement = to_spark(f"WITH edges AS ({task.edges('triples')}), {steps}", views)
        try:
            with self._stopped_in_time(tag), passed(), self._view(views["queries"], task.queries):
                yield self.session.sql(statement)
        except (PySparkException, Py4JError, ConnectionError) as error:
            check_time()
            raise QueryError(f"Spark cannot answer: {_cause(error)}") from error

    @contextmanager
    def _view(self, name: str, columns: Columns) -> Iterator[None]:
        """A table that statements can read while the block runs."""
        import pyarrow

        arrays = {name: np.ascontiguousarray(c, np.int32) for name, c in columns.items()}
        self.session.createDataFrame(pyarrow.table(arrays)).createTempView(name)
        try:
            yield
        finally:
            self.session.catalog.dropTempView(name)

    @contextmanager
    def _stopped_in_time(self, tag: str) -> Iterator[None]:
        """Interrupt what Spark runs for this thread in the block when its time is over."""
        tags = self._tags
        tags.add(tag)
        try:
            with interrupting(partial(tags.interrupt, tag), STOPPING):
                yield
        finally:
            tags.remove(tag)

    @property
    def _tags(self) -> _Tags:
        """How to mark and interrupt jobs; only Spark Connect can do it by the session."""
        if self.remote:
            session = self.session
            return _Tags(session.addTag, session.removeTag, session.interruptTag)
        # A session finds the tags of its own thread only, and another one interrupts.
        context = self.session.sparkContext
        return _Tags(context.addJobTag, context.removeJobTag, context.cancelJobsWithTag)


@dataclass(frozen=True)
class _Tags:
    """Marks the jobs that this thread starts."""

    add: Callable[[str], None]
    remove: Callable[[str], None]
    interrupt: Callable[[str], object]


def is_remote(master: str) -> bool:
    """Whether a master is a server of Spark Connect."""
    return master.startswith("sc://")


def connect(master: str, memory: str | None = None) -> SparkSession:
    """The session of a master: local[4], spark://host:7077, yarn, k8s://…, or sc://host remotely.

    memory limits Spark on this machine. A session that this process already has is used as it is.
    """
    try:
        import pyarrow  # noqa: F401
        import sqlglot  # noqa: F401
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise LmpnnError(
            f"the engine spark needs {error.name}: run `pip install 'lmpnn-kge[spark]'`"
        ) from error
    builder = SparkSession.builder.appName("lmpnn-kge")
    if is_remote(master):
        builder = builder.remote(master)
    else:
        builder = builder.master(master).config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.driver.memory", f"{memory_limit(memory)}m")
    if master.startswith("local"):  # where 200 parts, the default, take longer than the work
        builder = builder.config("spark.sql.shuffle.partitions", PARTS)
        builder = builder.config("spark.driver.host", "localhost")  # no network is needed
    try:
        session = builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise LmpnnError(
            f"Spark does not start at {master}: {one_line(error)}; it needs Java 17 or later"
        ) from error
    if not is_remote(master):
        session.sparkContext.setLogLevel("ERROR")
    return session


def _cause(error: Exception) -> str:
    """The innermost cause that Java reports, without its stack, on one line."""
    *_, cause = str(error).split("Caused by: ")
    return one_line(ValueError(cause.partition("\n\tat ")[0]))
