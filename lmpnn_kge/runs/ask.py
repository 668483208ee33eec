"""Asking a run, whether it is open or still a folder."""

from __future__ import annotations

from pathlib import Path
from typing import overload

from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.runs.answer import AnswerList
from lmpnn_kge.runs.run import Formulas, Run


@overload
def ask(
    run: Run | str | Path,
    formula: str,
    k: int | None = None,
    graph: KnowledgeGraph | str | Path | None = None,
    *,
    predicted: bool = False,
    method: str | None = None,
) -> AnswerList: ...


@overload
def ask(
    run: Run | str | Path,
    formula: Formulas,
    k: int | None = None,
    graph: KnowledgeGraph | str | Path | None = None,
    *,
    predicted: bool = False,
    method: str | None = None,
) -> list[AnswerList]: ...


def ask(
    run: Run | str | Path,
    formula: str | Formulas,
    k: int | None = None,
    graph: KnowledgeGraph | str | Path | None = None,
    *,
    predicted: bool = False,
    method: str | None = None,
) -> AnswerList | list[AnswerList]:
    """The k best answers to a formula or to each of a list, by a run or its folder; see `Run.ask`.

    graph is a graph or its folder, if it is not the run's own.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    return opened.ask(formula, k, predicted=predicted, graph=graph, method=method)
