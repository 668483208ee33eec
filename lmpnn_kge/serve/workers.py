"""Threads that compute the answers to requests: so many at once, and none for clients that left."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request

from lmpnn_kge.errors import LmpnnError
from lmpnn_kge.serve.limits import Limits
from lmpnn_kge.work.deadline import stoppable, time_limit

T = TypeVar("T")

#: Seconds between two looks whether a client is still there.
LOOK = 0.5


class BusyError(LmpnnError):
    """A server that has enough to do."""


class ClientGone(Exception):
    """Nobody waits for the response."""


class Workers:
    """Threads, and the requests that wait for one."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.pending = 0
        self.closing = threading.Event()
        self.threads = ThreadPoolExecutor(limits.at_once, thread_name_prefix="answer")

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """The result of some work; it is stopped if it takes too long or the client goes away.

        BusyError if too many others wait, or if it cannot begin in time.
        """
        if self.pending >= self.limits.at_once + self.limits.waiting:
            raise self._busy()
        stopped = threading.Event()
        latest = time.monotonic() + self.limits.seconds  # to begin
        self.pending += 1
        try:
            future = self.threads.submit(self._limited, work, stopped)
            done = asyncio.wrap_future(future)
            done.add_done_callback(_look)
            while not (await asyncio.wait([done], timeout=LOOK))[0]:
                if time.monotonic() > latest and future.cancel():  # unless it has begun
                    raise self._busy()
                if self.closing.is_set() or await request.is_disconnected():
                    stopped.set()
                    await asyncio.wait([done])
                    raise ClientGone
            return done.result()
        except asyncio.CancelledError:
            stopped.set()
            raise BusyError("the server stops") from None
        finally:
            self.pending -= 1

    def _busy(self) -> BusyError:
        return BusyError(f"{self.pending} requests are being answered; try again soon")

    def _limited(self, work: Callable[[], T], stopped: threading.Event) -> T:
        with stoppable(stopped), time_limit(self.limits.seconds):
            return work()

    def close(self) -> None:
        """Stop all work, and end the threads."""
        self.closing.set()
        self.threads.shutdown(cancel_futures=True)


def _look(done: asyncio.Future[T]) -> None:
    """Look at the error of some work, or asyncio would report it if nobody waits any more."""
    if not done.cancelled():
        done.exception()
