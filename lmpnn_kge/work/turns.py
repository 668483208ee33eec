"""Threads that compute take turns, because Python lets only one of them run at a time anyway.

Torch releases Python's lock in each of the hundreds of short operations that answer a question.
Threads that compute side by side wake one another for each of them, which takes longer than the
operations: 16 threads answered a third as many questions per second as one.

A turn saves time and nothing else. Whatever is right with turns is right without them: a turn that
takes long ends while its thread continues to compute, so that nobody waits for a long question.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

#: Turns at the same time: while one thread is in a long operation, another can use Python's lock.
AT_ONCE = 2

#: Seconds after which a turn ends if others wait.
LONGEST = 0.2


class _Turn:
    """The turn of one thread, or its place in the queue."""

    def __init__(self, share: int):
        self.share = share  # of the AT_ONCE that there are
        self.end = 0.0  # by time.monotonic, if others wait
        self.begun = threading.Lock()
        self.begun.acquire()  # until the turn begins


class Turns:
    """Who computes, and who waits for that."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._running: list[_Turn] = []
        self._waiting: deque[_Turn] = deque()
        self._own = threading.local()  # .turn is that of a thread

    @contextmanager
    def turn(self, *, alone: bool = False) -> Iterator[None]:
        """Wait for a turn, unless this thread has one.

        A thread whose operations use all cores takes its turn alone.
        """
        if getattr(self._own, "turn", None) is not None:
            yield
            return
        self._take(AT_ONCE if alone else 1)
        try:
            yield
        finally:
            self._give()

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Let others compute while this thread waits for something, if it has a turn."""
        turn: _Turn | None = getattr(self._own, "turn", None)
        if turn is None:
            yield
            return
        self._give()
        try:
            yield
        finally:
            self._take(turn.share)

    def _take(self, share: int) -> None:
        turn = _Turn(share)
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
            for turns in (self._running, self._waiting):
                if turn in turns:  # and not a turn that has ended before
                    turns.remove(turn)
            self._advance()

    def _advance(self) -> None:
        """Let the next turns begin, as far as others have left or are over."""
        now = time.monotonic()
        while self._waiting:
            self._running = [turn for turn in self._running if now < turn.end]
            if sum(turn.share for turn in self._running) + self._waiting[0].share > AT_ONCE:
                return
            turn = self._waiting.popleft()
            turn.end = now + LONGEST
            self._running.append(turn)
            turn.begun.release()


_turns = Turns()

turn, passed = _turns.turn, _turns.passed
