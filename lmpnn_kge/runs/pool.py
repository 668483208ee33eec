"""Processes that answer questions to one run, so that many threads use all cores."""

from __future__ import annotations

import copy
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch

from lmpnn_kge.errors import ConfigError, RunError, one_line
from lmpnn_kge.runs.run import Run
from lmpnn_kge.training.folder import RUN, RunFolder
from lmpnn_kge.work.deadline import Deadline, check_time, current_deadline, until

P = ParamSpec("P")
T = TypeVar("T")


class RunPool:
    """A run that several processes have opened; any number of threads can use it at the same time.

    The threads of one process compute in turns; with a pool, all of its processes compute at once.
    Each process takes the time to open the run, and the memory for it.
    """

    def __init__(self, folder: str | Path, processes: int | None = None, **opening: Any):
        """Open a run folder in several processes, by default one for each core.

        The other arguments are those of `Run.open`.
        """
        cores = os.cpu_count() or 1
        count = cores if processes is None else processes
        if count < 1:
            raise ConfigError(f"processes is {count}; a pool needs at least one")
        self._path = RunFolder.open(folder, RUN).path  # an error here names the folder
        threads = max(1, cores // count)
        self._closed, self._process = False, os.getpid()
        self._pool = ProcessPoolExecutor(
            count,
            multiprocessing.get_context("spawn"),  # a fork would copy locks that threads hold
            initializer=_begin,
            initargs=(self._path, opening, threads),
        )

    def call(
        self, function: Callable[Concatenate[Run, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What a function gives for the run: `call(Run.ask, "borders(Peru, ?)", 5)`.

        A function of your own must be importable by its name, as in any process pool. A
        `time_limit` of the calling thread holds in the process as well.
        """
        check_time()
        if os.getpid() != self._process:
            raise RunError(f"the pool of {self._path} belongs to another process; open one here")
        try:
            future = self._pool.submit(_call, current_deadline(), function, args, kwargs)
            return future.result()
        except BrokenProcessPool as error:
            raise RunError(
                f"a process that answers questions to {self._path} has ended: either memory is "
                "short, then open the pool with fewer processes, or a script opens it outside of "
                '`if __name__ == "__main__":`'
            ) from error
        except (CancelledError, RuntimeError) as error:
            if not self._closed:
                raise
            raise RunError(f"the pool of {self._path} is closed") from error

    def close(self) -> None:
        """End the processes after their current questions."""
        self._closed = True
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> RunPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


#: How a process of a pool opens its run, and the run once a question has come.
_opening: Callable[[], Run]
_run: Run | None = None


def _begin(folder: Path, opening: dict[str, Any], threads: int) -> None:
    global _opening
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the program, which ends its pool
    torch.set_num_threads(threads)
    _opening = partial(Run.open, folder, **opening)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process if the one that started it was killed."""
    if (parent := multiprocessing.parent_process()) is not None:
        wait([parent.sentinel])
        os._exit(1)


def _call(
    deadline: Deadline | None,
    function: Callable[..., T],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> T:
    global _run
    with until(deadline):
        check_time()  # it may have waited for its turn
        if _run is None:  # not before, so that an error reaches whoever asks
            _run = _opening()
        try:
            return function(_run, *args, **kwargs)
        except Exception as error:
            _check_can_be_sent(error)
            raise


def _check_can_be_sent(error: Exception) -> None:
    """RunError if an exception would not survive the way to another process."""
    try:
        copy.copy(error)  # which makes it from the same parts
    except Exception:
        raise RunError(f"{type(error).__name__}: {one_line(error)}") from error
