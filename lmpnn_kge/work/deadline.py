"""A time limit for answers, and a way to stop them: code that can take long checks both."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lmpnn_kge.errors import QueryError, StoppedError, TimeLimitError
from lmpnn_kge.work.repeat import repeating

#: Seconds that the commands give the answers to one formula if the user sets no other limit.
TIMEOUT = 60.0

#: Seconds after which nobody waits any more.
LONGEST = 1e9

#: Seconds between two looks at the time, and between two attempts to stop a statement.
STOPPING = 0.05


@dataclass(frozen=True)
class Deadline:
    """When the time for an answer is over."""

    end: float  # by time.monotonic, which is the same in all processes
    seconds: float  # that were given

    @property
    def error(self) -> TimeLimitError:
        return TimeLimitError(
            f"no answer within {self.seconds:g} s; simplify the formula, or allow more time with "
            "--timeout SECONDS (in Python: time_limit)"
        )


#: A context variable belongs to one thread, so that threads can have different limits.
_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)

#: Set by another thread to stop the answers of this one.
_stopped: ContextVar[threading.Event | None] = ContextVar("stopped", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Answers that take longer in this block end with a TimeLimitError; None or 0 is no limit.

    A limit inside another one cannot extend it.
    """
    inner = None
    if seconds:
        if not seconds > 0:
            raise QueryError(f"a time limit must be at least 0 seconds, not {seconds}")
        inner = Deadline(time.monotonic() + min(seconds, LONGEST), seconds)
    with until(inner):
        yield


@contextmanager
def until(inner: Deadline | None) -> Iterator[None]:
    """The same for a deadline, perhaps of another process."""
    outer = _deadline.get()
    earliest = min((d for d in (outer, inner) if d), key=lambda d: d.end, default=None)
    token = _deadline.set(earliest)
    try:
        yield
    finally:
        _deadline.reset(token)


@contextmanager
def stoppable(stopped: threading.Event) -> Iterator[None]:
    """Answers in this block end with a StoppedError soon after the event is set."""
    token = _stopped.set(stopped)
    try:
        yield
    finally:
        _stopped.reset(token)


@contextmanager
def interrupting(interrupt: Callable[[], object], pause: float = STOPPING) -> Iterator[None]:
    """Call `interrupt` when the time of this block is over, or when it is stopped.

    It is called again after each pause until the block ends: an engine ignores an interrupt between
    two statements.
    """
    deadline, stopped = _deadline.get(), _stopped.get()
    if deadline is None and stopped is None:
        yield
        return

    def watch() -> None:
        late = deadline is not None and time.monotonic() >= deadline.end
        if late or (stopped is not None and stopped.is_set()):
            interrupt()

    with repeating(watch, pause):  # to its end, so that no interrupt hits the next statement
        yield


def current_deadline() -> Deadline | None:
    """The deadline of this thread, if it has one."""
    return _deadline.get()


def check_time() -> None:
    """TimeLimitError if no time is left, StoppedError if nobody waits for the answers any more."""
    stopped = _stopped.get()
    if stopped is not None and stopped.is_set():
        raise StoppedError("the question was withdrawn before it was answered")
    deadline = _deadline.get()
    if deadline is not None and time.monotonic() >= deadline.end:
        raise deadline.error
