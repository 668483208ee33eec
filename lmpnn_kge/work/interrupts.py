"""Ctrl-C in work that Python cannot interrupt, such as a statement of an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
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
    with ThreadPoolExecutor(1) as other:
        future = other.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            with repeating(interrupt, STOPPING):
                wait_for([future])
            raise
