"""Asking a run, whether it is open or still a folder."""

from __future__ import annotations

from pathlib import Path

from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.runs.answer import Answer
from lmpnn_kge.runs.run import Run


def ask(
    run: Run | str | Path,
    formula: str,
    k: int = 10,
    graph: KnowledgeGraph | str | Path | None = None,
    *,
    predicted: bool = False,
) -> list[Answer]:
    """The k best answers to a formula, by a run or the folder of one; see `Run.ask`.

    graph is a graph or its folder, if it is not the run's own.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    return opened.ask(formula, k, predicted=predicted, graph=graph)
