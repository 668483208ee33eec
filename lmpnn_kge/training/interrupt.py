"""Stopping a training politely: Ctrl-C and SIGTERM finish the step and save."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lmpnn_kge.processes import current
from lmpnn_kge.work.listener import Detail, Listener, PassingListener


class Interrupted(Exception):
    """Training was stopped from outside; everything up to then is saved."""


@contextmanager
def interruptions() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether a signal has come; a second signal stops at once.

    In a job it does not: torchrun passes on a Ctrl-C that all processes have seen already.
    """
    seen = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield seen.is_set
        return
    before: dict[int, Any] = {}
    alone = current().alone

    def handle(number: int, frame: Any) -> None:
        seen.set()
        if alone:
            signal.signal(number, before[number])

    for number in (int(signal.SIGINT), int(signal.SIGTERM)):
        before[number] = signal.signal(number, handle)
    try:
        yield seen.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class InterruptibleListener(PassingListener):
    """Passes progress on, and raises Interrupted when the work should stop."""

    def __init__(self, listener: Listener, interrupted: Callable[[], bool]):
        super().__init__(listener)
        self.interrupted = interrupted

    def advance(self, steps: int = 1, detail: Detail | None = None) -> None:
        if self.interrupted():
            raise Interrupted
        super().advance(steps, detail)
