"""The demonstration: graph, embedding, queries, network, figures and answers, from nothing.

Finished parts that an earlier demonstration left in the folder are reused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lmpnn_kge.backbones.discovery import backbone_class
from lmpnn_kge.backbones.messages import ScoreType
from lmpnn_kge.backbones.open import open_backbone
from lmpnn_kge.errors import LmpnnError, RunError
from lmpnn_kge.graph.geography import NAME, write_geography
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.listener import SILENT, Listener
from lmpnn_kge.methods.frequency import Frequency
from lmpnn_kge.methods.rank import evaluate_split
from lmpnn_kge.methods.results import Results
from lmpnn_kge.methods.text_table import Table
from lmpnn_kge.reports.document import Block, Heading
from lmpnn_kge.reports.report import write_report
from lmpnn_kge.reports.sections import Section
from lmpnn_kge.runs.answer import Answer
from lmpnn_kge.runs.pretrain import pretrain
from lmpnn_kge.runs.run import Run
from lmpnn_kge.runs.train import train
from lmpnn_kge.training.penalty import USUAL

#: Questions in words, and as formulas.
QUESTIONS = {
    "Neighbours of Kenya that speak English": "borders(?, Kenya) & speaks(?, English)",
    "Neighbours of Germany without the euro": "borders(Germany, ?) & !currency(?, Euro)",
    "Swiss cities around Zürich": "city_in(?, Switzerland) & near(?, Zürich)",
}

#: Answers shown for each question.
SHOWN = 6


@dataclass(frozen=True)
class Demonstration:
    """The run that was trained, its results and its answers."""

    run: Run
    checkpoint: Path
    results: Results  # of LMPNN on test
    baseline: Results  # of the frequency baseline on the same queries
    answers: Mapping[str, list[Answer]]  # by formula
    report: Path


def demonstrate(
    folder: str | Path, backbone: str, device: str = "auto", listener: Listener = SILENT
) -> Demonstration:
    """Run the whole demonstration in a folder, with any installed backbone."""
    folder = Path(folder)
    model = backbone_class(backbone)
    suffix = "pt" if model.libkge_models else "safetensors"
    is_inner_product = model.score_type is ScoreType.INNER_PRODUCT
    dataset, checkpoint = folder / "data" / NAME, folder / f"{NAME}-{backbone}.{suffix}"
    graph = _open_graph(dataset)
    if not _fits(checkpoint, backbone, graph):
        if checkpoint.is_file():
            checkpoint.unlink()
        pretrain(
            backbone,
            graph,
            checkpoint,
            # Choosing the penalty would take longer than the rest of the demonstration.
            settings={"penalty": USUAL} if is_inner_product else None,
            device=device,
            resume=True,
            listener=listener,
        )
    run = train(
        checkpoint,
        backbone=backbone,
        dataset=dataset,
        config="tiny",
        out=folder / f"run-{backbone}",
        device=device,
        resume=True,
        listener=listener,
    )
    if run.results is None:
        raise RunError(f"{run.folder.path} has no results on test; remove {folder} and start again")
    queries, _ = run.queries("test")
    baseline = evaluate_split(Frequency.of(graph, run.backbone), queries, "test")
    answers = {formula: run.ask(formula, SHOWN) for formula in QUESTIONS.values()}
    report = write_report(
        [run.folder.path],
        folder / "report",
        title="LMPNN on countries and cities",
        sections=[_answer_section(answers)],
        beside={"frequency": baseline},
    )
    return Demonstration(run, checkpoint, run.results, baseline, answers, report)


def _answer_section(answers: Mapping[str, list[Answer]]) -> Section:
    """The questions with their answers, for the report."""
    blocks: list[Block] = []
    for question, formula in QUESTIONS.items():
        rows = [(a.label, f"{a.score:.3f}", a.mark) for a in answers[formula]]
        blocks += [Heading(question, 3), Table(["answer", "score", "is"], rows, caption=formula)]
    return Section("Questions", blocks)


def _open_graph(dataset: Path) -> KnowledgeGraph:
    """The embedded graph, written again if an earlier one cannot be read."""
    try:
        return KnowledgeGraph.open(dataset)
    except LmpnnError:
        return KnowledgeGraph.open(write_geography(dataset))


def _fits(checkpoint: Path, backbone: str, graph: KnowledgeGraph) -> bool:
    """Whether an earlier checkpoint can be read, and is of this backbone and this graph."""
    try:
        opened = open_backbone(checkpoint, backbone)
    except LmpnnError:
        return False
    return opened.has_names and opened.vocabulary.has_ids_of(graph.vocabulary)
