"""An answer to a question, with what the graph knows about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """An entity with its score.

    known: whether it follows from the training edges; None without a graph.
    confirmed: whether it follows from all edges, including those held out of training.
    """

    id: str
    label: str
    score: float
    known: bool | None = None
    confirmed: bool | None = None

    @property
    def mark(self) -> str:
        """known or predicted, and whether held-out edges confirm or contradict it."""
        if self.known is None:
            return "predicted or known"
        if self.known:  # a negation can hold only because an edge was held out
            return "known" if self.confirmed else "known, contradicted"
        return "predicted, confirmed" if self.confirmed else "predicted"

    def __repr__(self) -> str:
        name = self.label if self.label == self.id else f"{self.label}, {self.id}"
        return f"Answer({name}: {self.score:.3f}, {self.mark})"
