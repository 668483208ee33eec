"""Answers to a question: what a network ranks highest, beside what the graph itself knows."""

from __future__ import annotations

from dataclasses import dataclass

from lmpnn_kge.errors import RunError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.runs.run import Run


@dataclass(frozen=True)
class Answer:
    """An entity with its score.

    known: whether it follows from the training edges; None where there is no graph to tell.
    confirmed: whether it follows from all edges, those with it that were held out of training.
    """

    id: str
    label: str
    score: float
    known: bool | None = None
    confirmed: bool | None = None

    @property
    def mark(self) -> str:
        """In a word or three."""
        if self.known is None:
            return "predicted or known"
        if self.known:  # a negation can hold for want of an edge that was held out
            return "known" if self.confirmed else "known, contradicted"
        return "predicted, confirmed" if self.confirmed else "predicted"


def ask(
    run: Run,
    formula: str,
    k: int = 10,
    graph: KnowledgeGraph | None = None,
    *,
    predicted: bool = False,
) -> list[Answer]:
    """The k best answers to a formula over names.

    A graph tells the known from the predicted, and what its training edges refute is left out; so
    is what they know, if only the predicted are wanted.
    """
    if predicted and graph is None:
        raise RunError("without its graph nothing tells the predicted answers from the known ones")
    names = run.vocabulary
    known: set[str] = set()
    confirmed: set[str] = set()
    unwanted: set[str] = set()
    if graph is not None:
        known = set(graph.answer(formula, "train"))
        confirmed = set(graph.answer(formula, "test"))
        unwanted = {graph.entity_ids[row] for row in graph.refuted(formula)}
        unwanted |= known if predicted else set()
    ranked = run.rank(formula, k + len(unwanted))
    return [
        Answer(
            id_,
            names.label(names.entity(id_)),
            score,
            None if graph is None else id_ in known,
            None if graph is None else id_ in confirmed,
        )
        for id_, score in [answer for answer in ranked if answer[0] not in unwanted][:k]
    ]
