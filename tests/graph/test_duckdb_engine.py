"""Memory and temporary files of DuckDB."""

import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph import duckdb_engine, memory
from lmpnn_kge.graph.duckdb_engine import DuckDB, _Session
from lmpnn_kge.graph.engine import EngineOptions, Task
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.memory import machine_memory, memory_limit

#: Nine million pairs of entities, which 60 MB cannot hold.
PAIRS = (
    "WITH pairs AS MATERIALIZED (SELECT DISTINCT a.e AS u, b.e AS v FROM entities a, entities b) "
    "SELECT count(*) AS n FROM pairs"
)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The temporary folder of the system."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def engine(entities: int = 3000) -> DuckDB:
    return DuckDB(np.array([[0, 0, 1]]), np.array([0]), entities, 1, memory="60MB")


def count_pairs(database: DuckDB) -> int:
    return int(database.run(Task(PAIRS, [], 1, {}, {}, 0))["n"][0])


def test_results_larger_than_memory_go_to_a_folder_that_is_removed(temporary):
    database = engine()
    assert count_pairs(database) == 3000**2
    assert len(list(temporary.iterdir())) == 1
    del database
    gc.collect()
    assert not list(temporary.iterdir())


def test_a_result_larger_than_memory_and_disk_is_refused(monkeypatch):
    monkeypatch.setattr(duckdb_engine, "spill_folder", lambda cleanup: None)
    with pytest.raises(QueryError, match=r"more than 60 MB of memory .* --memory SIZE"):
        count_pairs(engine())


def test_what_a_killed_process_left_is_removed_and_what_others_use_is_not(temporary):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    left = temporary / f".lmpnn-kge-results.{process.pid}-0123abcd.partial"
    left.mkdir()
    (left / "block").touch()
    first, second = engine(2), engine(2)
    assert count_pairs(first) == count_pairs(second) == 4
    assert not left.exists()
    assert len(list(temporary.iterdir())) == 2


def test_duckdb_starts_with_the_first_question_that_needs_a_statement(toy_dataset):
    graph = KnowledgeGraph.open(toy_dataset)
    started = vars(graph.database.engine)
    graph.answer("friend_of(person/sven_ekdal, ?)")
    assert "connection" not in started
    graph.answer("friend_of(?, ?x) & friend_of(?x, ?y) & friend_of(?y, ?)")  # a cycle
    assert "connection" in started


def test_the_limit_is_half_of_the_machine(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 16_000_000_000)
    assert memory_limit() == 8000


def test_a_container_limits_the_machine(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "CONTAINER", limit)
    whole = machine_memory()
    limit.write_text("max\n")
    assert machine_memory() == whole
    limit.write_text("1000000\n")
    assert machine_memory() == 1_000_000


@pytest.mark.parametrize(
    ("size", "megabytes"), [("8GB", 8000), ("500 mb", 500), ("1.5GiB", 1611), ("1KB", 1)]
)
def test_sizes_of_memory_are_accepted(size, megabytes):
    assert memory_limit(size) == megabytes


@pytest.mark.parametrize(
    "size", ["", "8", "much", "-1GB", "0GB", "9" * 400 + "GB", "8GB; DROP TABLE triples"]
)
def test_other_sizes_are_refused_before_any_work(size):
    with pytest.raises(QueryError, match="such as 500MB or 8GB"):
        EngineOptions(memory=size)


class Waiting:
    """A connection with a long statement, which gets Ctrl-C and ends when it is interrupted."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()

    def execute(self, statement):
        if statement == "long":
            os.kill(os.getpid(), signal.SIGINT)
            self.interrupted.wait()
        return self

    def interrupt(self):
        self.interrupted.set()

    def fetchnumpy(self):
        return {}


def test_ctrl_c_ends_a_statement_at_once_also_without_a_time_limit():
    with pytest.raises(KeyboardInterrupt):
        _Session(Waiting()).fetch("long")
