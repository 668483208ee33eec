"""When to stop looking for queries that keep to the rules."""

from __future__ import annotations

from dataclasses import dataclass

#: A round that yields less than FEW is idle; PATIENCE idle rounds in a row are too many.
PATIENCE, FEW = 20, 10

#: Rounds that yield less than this on average are worth replacing by better directed ones.
SCARCE = 100


@dataclass
class Patience:
    """What the rounds of a search yielded so far."""

    rounds: int = 0
    total: int = 0
    idle: int = 0  # rounds in a row, up to the last

    def count(self, gained: int) -> None:
        """Take note of a round."""
        self.rounds += 1
        self.total += gained
        self.idle = 0 if gained >= FEW else self.idle + 1

    @property
    def scarce(self) -> bool:
        """Whether the rounds yield little, after enough of them to say so."""
        return self.rounds >= PATIENCE and self.total < SCARCE * self.rounds

    @property
    def exhausted(self) -> bool:
        """Whether to give up: the last rounds were idle, or all together are little better.

        Without the second limit, a lucky round now and then would keep a hopeless search alive.
        """
        return self.idle >= PATIENCE or self.total < FEW * (self.rounds - PATIENCE)
