"""Threads that compute take turns, because Python lets only one of them run at a time anyway.

Torch releases Python's lock in each of the hundreds of short operations that answer a question.
Threads that compute side by side wake one another for each of them, which takes longer than the
operations: 16 threads answered a third as many questions per second as one.

A turn saves time and nothing else. Whatever is right with turns is right without them: a turn that
takes long ends while its thread goes on computing, so that nobody waits for a long question.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

#: Seconds after which a turn ends if others wait.
LONGEST = 0.2


class _Turn:
    """The turn of one thread, or its place in the queue."""

    def __init__(self) -> None:
        self.begun = threading.Lock()
        self.begun.acquire()  # until the turn of this thread begins


class Turns:
    """Who computes, and who waits for that."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._current: _Turn | None = None
        self._end = 0.0  # of the current turn, if others wait; by time.monotonic
        self._waiting: deque[_Turn] = deque()
        self._own = threading.local()  # .turn is that of a thread

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, unless this thread has one."""
        if getattr(self._own, "turn", None) is not None:
            yield
            return
        self._take()
        try:
            yield
        finally:
            self._give()

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Let others compute while this thread waits for something, if it has a turn."""
        if getattr(self._own, "turn", None) is None:
            yield
            return
        self._give()
        try:
            yield
        finally:
            self._take()

    def _take(self) -> None:
        turn = _Turn()
        with self._changing:
            self._waiting.append(turn)
            self._advance()
        try:
            while not turn.begun.acquire(timeout=LONGEST):
                with self._changing:
                    self._advance()
        except BaseException:  # Ctrl-C while it waits
            self._leave(turn)
            raise
        self._own.turn = turn

    def _give(self) -> None:
        turn, self._own.turn = self._own.turn, None
        if turn is not None:  # it is if Ctrl-C came while `passed` waited for it
            self._leave(turn)

    def _leave(self, turn: _Turn) -> None:
        with self._changing:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn is self._current:  # and not a turn that has ended before
                self._current = None
                self._advance()

    def _advance(self) -> None:
        """Let the next turn begin if there is none, or if the current one is over."""
        now = time.monotonic()
        if self._waiting and (self._current is None or now >= self._end):
            self._current = self._waiting.popleft()
            self._end = now + LONGEST
            self._current.begun.release()


_turns = Turns()

turn, passed = _turns.turn, _turns.passed
