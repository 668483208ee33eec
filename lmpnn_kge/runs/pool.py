"""Processes that answer questions to one run, so that many threads use all cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch

from lmpnn_kge.errors import ConfigError, RunError
from lmpnn_kge.runs.run import Run
from lmpnn_kge.training.folder import RUN, RunFolder
from lmpnn_kge.work.deadline import check_time, seconds_left, time_limit

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
        try:
            return self._pool.submit(_call, seconds_left(), function, args, kwargs).result()
        except BrokenProcessPool as error:
            raise RunError(
                f"a process that answers questions to {self._path} has ended: either memory is "
                "short, then open the pool with fewer processes, or a script opens it outside of "
                '`if __name__ == "__main__":`'
            ) from error

    def close(self) -> None:
        """End the processes after their current questions."""
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


def _call(
    seconds: float | None, function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> T:
    global _run
    if _run is None:  # not before, so that an error reaches whoever asks
        _run = _opening()
    with time_limit(seconds):
        return function(_run, *args, **kwargs)
