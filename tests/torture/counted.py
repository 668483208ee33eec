"""A command in a child process that one of its operations on files stops."""

import builtins
import errno
import io
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .campaign import Outcome

#: The functions of `os` that are counted, besides opening a file to write, and every write.
FUNCTIONS = ("rename", "replace", "mkdir", "rmdir", "unlink", "fsync")

#: The data of the tests, which commands read.
DATA = Path(__file__).resolve().parents[1] / "data"

#: Those that a full disk does not hinder.
REMOVING = ("rmdir", "unlink")


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, negative for a signal, and what it printed."""

    code: int
    operations: int
    stderr: str

    @property
    def outcome(self) -> Outcome:
        return Outcome.REFUSED if self.code > 0 else Outcome.ACCEPTED


@dataclass(frozen=True)
class Started:
    """A command that runs."""

    process: int
    log: Path
    counts: Path


def run_counted(job: list[str], folder: Path, log: Path, place: int, mode: str) -> Ended:
    """Run a command in a folder; at its N-th operation it is killed, or the disk is full."""
    return wait_counted(start_counted(job, folder, log, place, mode))


def start_counted(job: list[str], folder: Path, log: Path, place: int, mode: str) -> Started:
    """Start a command; its mode says what happens at its N-th operation.

    kill: it is killed; full: the disk is full from then on; stop: it stops until it is told to go
    on; signal N: it gets a signal; remove PATH: a file or folder is gone; error N: the operation
    fails with this error. Operations that read count for the last two only.
    """
    counts = log.with_name(f"{log.name}.count")
    return start(job, folder, log, lambda: Counter(place, mode, counts).install())


def start(job: list[str], folder: Path, log: Path, before: Callable[[], None]) -> Started:
    """Start a command in a process of its own, which does something before."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.chdir(folder)
            with log.open("wb") as stream:
                os.dup2(stream.fileno(), 2)
                os.dup2(stream.fileno(), 1)
            sys.stdout, sys.stderr = (os.fdopen(n, "w", closefd=False) for n in (1, 2))
            before()
            code = _main(job)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(AttributeError, OSError, ValueError):  # it may be closed
                sys.stderr.flush()
            os._exit(code)
    return Started(child, log, log.with_name(f"{log.name}.count"))


def wait_stopped(started: Started) -> int | None:
    """Wait until a command stops; its status if it ended before."""
    status = os.waitpid(started.process, os.WUNTRACED)[1]
    return None if os.WIFSTOPPED(status) else status


def wait_counted(started: Started, status: int | None = None) -> Ended:
    """How a command ended; one that has stopped goes on first."""
    if status is None:
        os.kill(started.process, signal.SIGCONT)
        status = os.waitpid(started.process, 0)[1]
    status = os.waitstatus_to_exitcode(status)
    operations = int(started.counts.read_text() or 0) if started.counts.exists() else 0
    return Ended(status, operations, started.log.read_text(errors="replace"))


def _main(job: list[str]) -> int:
    from lmpnn_kge.cli import main

    if job[0] == "demo":
        _make_demo_small()
    try:
        main(job, prog_name="lmpnn-kge")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def _make_demo_small() -> None:
    """Let the demonstration learn little, from few queries."""
    from lmpnn_kge import demo
    from lmpnn_kge.query.patterns import BETAE
    from lmpnn_kge.runs import inputs, pretrain
    from lmpnn_kge.runs.train import train
    from lmpnn_kge.settings.files import load_settings

    from ..toy_runs import sample_few

    pretrain.load_settings = lambda kind, names, settings=None: load_settings(
        kind, names, {**(settings or {}), "dim": 4, "epochs": 1}
    )
    demo.train = lambda *arguments, **options: train(
        *arguments, settings={"epochs": 1, "hidden": 8}, **options
    )
    inputs.sample_store = lambda graph, folder, **options: sample_few(graph, folder, 4, BETAE)
    demo.sample_store = inputs.sample_store


class Counter:
    """Counts the operations of this process, and stops it at one of them."""

    def __init__(self, place: int, mode: str, counts: Path):
        self.place, self.mode, self.counts = place, mode, counts
        self.done, self.is_full = 0, False
        self.folder = os.path.realpath(os.getcwd())
        self.write = os.open(counts, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)

    def step(self, hindered: bool = True, file: Any = None) -> None:
        self.done += 1
        os.pwrite(self.write, str(self.done).encode(), 0)
        if self.done == self.place:
            if self.mode == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.mode == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            elif self.mode.startswith("signal "):
                os.kill(os.getpid(), int(self.mode.removeprefix("signal ")))
            elif self.mode.startswith("remove "):
                self._remove(self.mode.removeprefix("remove "))
            elif self.mode.startswith("error "):
                number = int(self.mode.removeprefix("error "))
                raise OSError(number, os.strerror(number), file)
            self.is_full = self.mode == "full"
        if self.is_full and hindered:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file)

    def install(self) -> None:
        for name in FUNCTIONS:
            setattr(os, name, self._counted(getattr(os, name), name not in REMOVING))
        opening = io.open

        def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            written = any(letter in mode for letter in "wxa+")
            if not isinstance(file, int) and self._counts(file, written):
                self.step(file=file)
            if not written or isinstance(file, int) or not self._is_ours(file):
                return opening(file, mode, *arguments, **options)
            if "b" not in mode:
                return opening(file, mode, *arguments, **options)
            return io.BufferedWriter(_Raw(self, file, mode.replace("b", "")))

        io.open = builtins.open = opened  # type: ignore[assignment]

    def _remove(self, path: str) -> None:
        """Remove a file or folder, as another process might: it is not counted."""
        self.place = 0
        subprocess.run(["rm", "-rf", path], check=True)

    def _counts(self, file: Any, written: bool) -> bool:
        if written:
            return self._is_ours(file)
        return self.mode.startswith("remove") or (
            self.mode.startswith("error") and self._is_data(file)
        )

    def _is_data(self, file: Any) -> bool:
        """Whether a file is one that a user has, and not a part of an installed package."""
        path = os.path.realpath(os.fsdecode(file))
        return path.startswith((os.path.dirname(self.folder), str(DATA)))

    def _is_ours(self, file: Any) -> bool:
        return os.path.realpath(os.fsdecode(file)).startswith(self.folder)

    def _counted(self, function: Any, hindered: bool) -> Any:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.step(hindered, file=None if isinstance(arguments[0], int) else arguments[0])
            return function(*arguments, **options)

        return counted


class _Raw(io.FileIO):
    def __init__(self, counter: Counter, file: Any, mode: str):
        super().__init__(file, mode)
        self.counter = counter

    def write(self, data: Any) -> int:
        self.counter.step()
        return super().write(data)
