"""Ctrl-C in work that Python cannot interrupt, such as a statement of an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from lmpnn_kge.work.deadline import STOPPING
from lmpnn_kge.work.repeat import repeating

T = TypeVar("T")


def interruptible(work: Callable[[], T], interrupt: Callable[[], object]) -> T:
    """The result of some work; Ctrl-C calls `interrupt` until the work has ended.

    Only the main thread gets Ctrl-C, so another thread works while it waits.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    future: Future[T] = Future()

    def run() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

    try:
        threading.Thread(target=run, daemon=True).start()
        return future.result()
    except KeyboardInterrupt:
        if not future.cancel():  # because it has begun
            with repeating(interrupt, STOPPING):
                wait([future])
        raise
