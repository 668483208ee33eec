"""What one request may take from a server, so that a server can be left running."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lmpnn_kge.work.turns import AT_ONCE


@dataclass(frozen=True)
class Limits:
    """Limits for each request; what exceeds one gets an answer that says so."""

    seconds: float = 20.0  # for the answer to a question, and for sending a request
    rows: int = 1000  # of one answer
    characters: int = 10_000  # of a question
    lines: int = 10_000  # of a stream of questions
    body: int = 2**20  # bytes of a request
    at_once: int = os.cpu_count() or 1  # requests that are answered at the same time
    waiting: int = 128  # requests that wait for those

    @property
    def statement_threads(self) -> int:
        """The cores for a statement of DuckDB, beside which others run."""
        return max(1, (os.cpu_count() or 1) // self.at_once)

    @property
    def torch_threads(self) -> int:
        """The cores for an operation of torch; at most AT_ONCE requests compute at a time."""
        return max(1, (os.cpu_count() or 1) // min(self.at_once, AT_ONCE))
