"""Processes that answer questions to one run."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmpnn_kge import ConfigError, QueryError, Run, RunError, RunPool, TimeLimitError, time_limit
from lmpnn_kge.work.deadline import Deadline, current_deadline

from ..conftest import ROOT
from ..toy_runs import train_tiny

FRIENDS = "friend_of(person/sven_ekdal, ?)"
FORMULAS = [
    FRIENDS,
    "friend_of(person/sven_ekdal, ?x) & mentor_of(?x, ?)",
    "known_in(?, ?x) & friend_of(?, person/sven_ekdal) & !mentor_of(?, person/sven_ekdal)",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory, toy_queries) -> Run:
    return train_tiny(toy_queries, tmp_path_factory.mktemp("pool") / "run")


@pytest.fixture(scope="module")
def pool(run):
    with RunPool(run.folder.path, 2) as opened:
        yield opened


def kill(run: Run) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_threads_get_the_answers_of_the_run_from_a_pool(run, pool):
    wanted = [(formula, method) for formula in FORMULAS for method in ("lmpnn", "hybrid")]
    alone = [run.ask(formula, 5, method=method) for formula, method in wanted]
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(pool.call, Run.ask, f, 5, method=m) for f, m in wanted * 4]
        assert [future.result() for future in asked] == alone * 4
    assert pool.call(Run.ask, FORMULAS[0]).question == FORMULAS[0]


def test_errors_arrive_as_the_run_raises_them(run, pool):
    with pytest.raises(QueryError) as alone:
        run.ask("friend_of(nobody, ?)")
    with pytest.raises(QueryError) as pooled:
        pool.call(Run.ask, "friend_of(nobody, ?)")
    assert str(pooled.value) == str(alone.value)
    assert pooled.value.excerpt == alone.value.excerpt is not None


def test_a_time_limit_of_the_thread_holds_in_the_process(pool):
    with pytest.raises(TimeLimitError, match="no answer within"), time_limit(1e-9):
        pool.call(Run.ask, FORMULAS[1])
    assert pool.call(Run.ask, FORMULAS[1])  # without it there is none


def test_what_cannot_be_opened_is_one_line(run, tmp_path):
    with pytest.raises(RunError, match="not a run folder"):
        RunPool(tmp_path)
    with pytest.raises(ConfigError, match="at least one"):
        RunPool(run.folder.path, 0)
    with (
        RunPool(run.folder.path, 1, device="nonsense") as pool,
        pytest.raises(RunError, match="device"),
    ):
        pool.call(Run.ask, FRIENDS)


def test_a_process_that_was_killed_is_one_line(run):
    with RunPool(run.folder.path, 1) as pool, pytest.raises(RunError, match="fewer processes"):
        pool.call(kill)


def deadline(run: Run) -> Deadline | None:
    return current_deadline()


def test_the_time_that_a_question_waits_counts(pool):
    with time_limit(1000):
        assert pool.call(deadline) == current_deadline() is not None
    assert pool.call(deadline) is None


class TwoArguments(Exception):
    def __init__(self, one: str, two: str):
        super().__init__(f"{one} and {two}")


def fail_oddly(run: Run) -> None:
    raise TwoArguments("this", "that")


def test_an_exception_that_cannot_be_sent_arrives_as_a_text(pool):
    with pytest.raises(RunError, match="TwoArguments: this and that"):
        pool.call(fail_oddly)
    assert pool.call(Run.ask, FRIENDS)


def test_a_closed_pool_says_so(run):
    pool = RunPool(run.folder.path, 1)
    pool.close()
    with pytest.raises(RunError, match="is closed"):
        pool.call(Run.ask, FRIENDS)


PARENT = """
import os, sys
from lmpnn_kge import RunPool
from tests.runs.test_pool import process

if __name__ == "__main__":
    pool = RunPool(sys.argv[1], 1)
    print(pool.call(process), flush=True)
    os.kill(os.getpid(), 9)
"""


def process(run: Run) -> int:
    return os.getpid()


def test_the_processes_of_a_killed_program_end(run, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    asked = subprocess.run(
        [sys.executable, script, run.folder.path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,  # which ends when the last process that writes to it has ended
        text=True,
        timeout=60,
    )
    assert (asked.returncode, int(asked.stdout) > 0) == (-signal.SIGKILL, True)


def test_a_forked_process_cannot_use_the_pool(pool, monkeypatch):
    monkeypatch.setattr(pool, "_process", os.getpid() + 1)
    with pytest.raises(RunError, match="belongs to another process"):
        pool.call(Run.ask, FRIENDS)
