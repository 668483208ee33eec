"""A time limit for answers: code that can take long checks it from time to time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lmpnn_kge.errors import TimeLimitError

#: Seconds that the commands give the answers to one formula if the user sets no other limit.
TIMEOUT = 60.0


@dataclass(frozen=True)
class _Deadline:
    end: float  # by time.monotonic
    seconds: float  # that were given

    @property
    def error(self) -> TimeLimitError:
        return TimeLimitError(
            f"no answer within {self.seconds:g} s; simplify the formula, or allow more time with "
            "--timeout SECONDS (in Python: time_limit)"
        )


#: A context variable belongs to one thread, so that threads can have different limits.
_deadline: ContextVar[_Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Answers that take longer in this block end with a TimeLimitError; None or 0 is no limit.

    A limit inside another one cannot extend it.
    """
    outer, inner = _deadline.get(), None
    if seconds:
        inner = _Deadline(time.monotonic() + seconds, seconds)
    earliest = min((d for d in (outer, inner) if d), key=lambda d: d.end, default=None)
    token = _deadline.set(earliest)
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float | None:
    """The time that is left, perhaps less than 0; None if there is no limit."""
    deadline = _deadline.get()
    return None if deadline is None else deadline.end - time.monotonic()


def check_time() -> None:
    """TimeLimitError if no time is left."""
    deadline = _deadline.get()
    if deadline is not None and time.monotonic() >= deadline.end:
        raise deadline.error


@contextmanager
def interrupting(interrupt: Callable[[], object], pause: float) -> Iterator[None]:
    """Call `interrupt` when the time for this block is over, and again after each pause.

    An engine ignores an interrupt between two statements, so one may not be enough.
    """
    seconds = seconds_left()
    if seconds is None:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        wait: float = seconds
        while not ended.wait(wait):
            interrupt()
            wait = pause

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()  # so that no interrupt hits what comes next
