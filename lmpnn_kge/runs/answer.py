"""An answer to a question, with what the graph knows about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lmpnn_kge.notebook import data_frame, html_paragraphs, html_table, html_text
from lmpnn_kge.query.reason import Name, Reason


@dataclass(frozen=True)
class Answer:
    """An entity with its score.

    probability: how likely the answer is right; None if the method does not estimate that.
    known: whether it follows from the training edges; None without a graph.
    confirmed: whether it follows from all edges, including those held out of training.
    reasons: the ways in which it can answer, if they were asked for; the best first.
    """

    id: str
    label: str
    score: float
    probability: float | None = None
    known: bool | None = None
    confirmed: bool | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def mark(self) -> str:
        """known or predicted, and whether held-out edges confirm or contradict it."""
        if self.known is None:
            return "not checked against a graph"
        if self.known:  # a negation can hold only because an edge was held out
            return "known" if self.confirmed else "known, but a held-out edge contradicts it"
        return "predicted, confirmed by held-out edges" if self.confirmed else "predicted"

    @property
    def figure(self) -> str:
        """The probability in percent, or the score if there is none."""
        return f"{self.score:.3f}" if self.probability is None else f"{self.probability:.1%}"

    def __repr__(self) -> str:
        name = self.label if self.label == self.id else f"{self.label}, {self.id}"
        return f"Answer({name}: {self.figure}, {self.mark})"


@dataclass(frozen=True, repr=False)
class TupleAnswer(Answer):
    """A tuple of entities; its id and label have those of all of them, separated by commas."""

    entities: tuple[Name, ...] = ()


@dataclass(frozen=True)
class NumberOfAnswers:
    """How many answers a question probably has."""

    expected: float
    known: int | None  # by the training edges; None without a graph

    def __str__(self) -> str:
        number = round(self.expected)
        text = f"about {number:,} answer{'s' * (number != 1)}"
        return text if self.known is None else f"{text}, {self.known:,} of them known"


class AnswerList(list[Answer]):
    """The answers to one question, best first, with notes on how the question was understood."""

    def __init__(
        self,
        question: str,
        answers: Iterable[Answer] = (),
        notes: Sequence[str] = (),
        *,
        estimated: bool = False,
    ):
        super().__init__(answers)
        self.question = question
        self.notes = tuple(notes)
        self.estimated = estimated  # whether the method estimates probabilities

    @property
    def figures(self) -> list[str]:
        """What to print before each answer: its probability, or the score if none is estimated.

        A known answer of a question with negation has no probability: nobody knows which edges
        are denied only because they are missing.
        """
        return ["–" if self.estimated and a.probability is None else a.figure for a in self]

    def to_frame(self) -> Any:
        """The answers as a DataFrame, a row for each (needs pandas)."""
        columns = ("id", "label", "score", "probability", "known", "confirmed", "mark")
        return data_frame({name: [getattr(a, name) for a in self] for name in columns})

    def _repr_html_(self) -> str:
        """What a notebook shows: the question, its answers with their reasons, and notes."""
        rows = [
            [figure, answer.label, answer.id, answer.mark, *self._why(answer)]
            for answer, figure in zip(self, self.figures, strict=True)
        ]
        why = ["reason"] * any(answer.reasons for answer in self)
        header = ["probability" if self.estimated else "score", "answer", "id", "", *why]
        return "".join([
            f"<p><code>{html_text(self.question)}</code></p>",
            html_table(header, rows),
            html_paragraphs(self.notes),
        ])  # fmt: skip

    def _why(self, answer: Answer) -> list[str]:
        """A cell for the best reason of an answer, if any answer has one."""
        if not any(other.reasons for other in self):
            return []
        return ["; ".join(" ".join(line.split()) for r in answer.reasons[:1] for line in r.lines())]
