"""A command in a child process that one of its operations on files stops."""

import builtins
import io
import os
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The functions of `os` that are counted, besides opening a file to write, and every write.
FUNCTIONS = ("rename", "replace", "mkdir", "rmdir", "unlink", "fsync")

#: Those that a full disk does not hinder.
REMOVING = ("rmdir", "unlink")


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, negative for a signal, and what it printed."""

    code: int
    operations: int
    stderr: str


def run_counted(job: list[str], folder: Path, log: Path, place: int, mode: str) -> Ended:
    """Run a command in a folder; at its N-th operation it is killed, or the disk is full."""
    counts = log.with_suffix(".count")
    child = os.fork()
    if not child:
        code = 1
        try:
            os.chdir(folder)
            with log.open("wb") as stream:
                os.dup2(stream.fileno(), 2)
                os.dup2(stream.fileno(), 1)
            sys.stdout, sys.stderr = (os.fdopen(n, "w", closefd=False) for n in (1, 2))
            Counter(place, mode, counts).install()
            code = _main(job)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    operations = int(counts.read_text()) if counts.exists() else 0
    return Ended(status, operations, log.read_text(errors="replace"))


def _main(job: list[str]) -> int:
    from lmpnn_kge.cli import main

    try:
        main(job, prog_name="lmpnn-kge")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


class Counter:
    """Counts the operations of this process, and stops it at one of them."""

    def __init__(self, place: int, mode: str, counts: Path):
        self.place, self.mode, self.counts = place, mode, counts
        self.done, self.is_full = 0, False
        self.folder = os.path.realpath(os.getcwd())
        self.write = os.open(counts, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)

    def step(self, hindered: bool = True) -> None:
        self.done += 1
        os.pwrite(self.write, str(self.done).encode(), 0)
        if self.done == self.place:
            if self.mode == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            self.is_full = True
        if self.is_full and hindered:
            raise OSError(28, "No space left on device")

    def install(self) -> None:
        for name in FUNCTIONS:
            setattr(os, name, self._counted(getattr(os, name), name not in REMOVING))
        opening = io.open

        def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            written = any(letter in mode for letter in "wxa+")
            if not written or isinstance(file, int) or not self._is_ours(file):
                return opening(file, mode, *arguments, **options)
            self.step()
            if "b" not in mode:
                return opening(file, mode, *arguments, **options)
            return io.BufferedWriter(_Raw(self, file, mode.replace("b", "")))

        io.open = builtins.open = opened  # type: ignore[assignment]

    def _is_ours(self, file: Any) -> bool:
        return os.path.realpath(os.fsdecode(file)).startswith(self.folder)

    def _counted(self, function: Any, hindered: bool) -> Any:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.step(hindered)
            return function(*arguments, **options)

        return counted


class _Raw(io.FileIO):
    def __init__(self, counter: Counter, file: Any, mode: str):
        super().__init__(file, mode)
        self.counter = counter

    def write(self, data: Any) -> int:
        self.counter.step()
        return super().write(data)
