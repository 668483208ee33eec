"""Something that is done again and again beside a block of work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeating(action: Callable[[], object], pause: float) -> Iterator[None]:
    """Call `action` in a thread after each pause, in seconds, until the block has ended."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(pause):
            action()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
