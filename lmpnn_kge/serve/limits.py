"""What one request may take from a server, so that a server can be left running."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits for each request; what exceeds one gets an answer that says so."""

    seconds: float = 20.0  # for the answer to a question, and for sending a request
    rows: int = 1000  # of one answer
    characters: int = 10_000  # of a question
    lines: int = 10_000  # of a stream of questions
    body: int = 2**20  # bytes of a request
    at_once: int = os.cpu_count() or 1  # requests that compute at the same time
    waiting: int = 128  # requests that wait for those

    @property
    def threads(self) -> int:
        """The share of the cores that one request needs, because others are answered beside it."""
        return max(1, (os.cpu_count() or 1) // self.at_once)
