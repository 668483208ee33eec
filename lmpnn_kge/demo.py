"""The whole way on the embedded graph: graph, embedding, queries, network, figures, answers.

What an earlier demonstration left in the folder is used again where it is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmpnn_kge.backbones.open import open_backbone
from lmpnn_kge.backbones.plugins import load_backbone
from lmpnn_kge.errors import LmpnnError
from lmpnn_kge.graph.formats.libkge import LibkgeDataset
from lmpnn_kge.graph.geography import NAME, write_geography
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.methods.frequency import Frequency
from lmpnn_kge.methods.rank import evaluate
from lmpnn_kge.methods.results import as_json
from lmpnn_kge.reports.document import Block, Heading, Table
from lmpnn_kge.reports.report import Section, write_report
from lmpnn_kge.runs.ask import Answer, ask
from lmpnn_kge.runs.inputs import Sample
from lmpnn_kge.runs.run import Run, train
from lmpnn_kge.training.embedding import pretrain
from lmpnn_kge.training.loop import Watch

#: Each with what it asks, and in the words of the query language.
QUESTIONS = {
    "Neighbours of Kenya that speak English": "borders(?, Kenya) & speaks(?, English)",
    "Neighbours of Germany without the euro": "borders(Germany, ?) & !currency(?, Euro)",
    "Swiss cities around Zürich": "city_in(?, Switzerland) & near(?, Zürich)",
}

#: Answers to each.
SHOWN = 6


@dataclass(frozen=True)
class Demonstration:
    """What came of it."""

    run: Run
    checkpoint: Path
    dataset: Path
    results: Mapping[str, Any]  # of LMPNN on test
    baseline: Mapping[str, Any]  # of the frequency baseline on the same queries
    answers: Mapping[str, list[Answer]]  # by formula
    report: Path


def demonstrate(
    folder: str | Path, backbone: str, watch: Watch, sample: Sample, device: str = "auto"
) -> Demonstration:
    """Go the whole way in a folder, with any installed backbone."""
    folder = Path(folder)
    suffix = "pt" if load_backbone(backbone).libkge_models else "safetensors"
    dataset, checkpoint = folder / "data" / NAME, folder / f"{NAME}-{backbone}.{suffix}"
    if not _opens(dataset):
        dataset.parent.mkdir(parents=True, exist_ok=True)
        write_geography(dataset)
    if not _fits(checkpoint, backbone, dataset):
        if checkpoint.is_file():
            checkpoint.unlink()
        pretrain(backbone, dataset, checkpoint, device=device, resume=True, watch=watch)
    run = train(
        checkpoint,
        backbone=backbone,
        dataset=dataset,
        config="tiny",
        out=folder / f"run-{backbone}",
        device=device,
        resume=True,
        watch=watch,
        sample=sample,
    )
    graph = KnowledgeGraph.open(dataset)
    queries = run.queries("test").splits["test"]
    baseline = as_json("test", evaluate(Frequency.of(graph, run.backbone), queries))
    answers = {formula: ask(run, formula, SHOWN, graph) for formula in QUESTIONS.values()}
    report = write_report(
        [run.folder.path],
        folder / "report",
        title="LMPNN on countries and cities",
        sections=[_answered(answers)],
        beside={"frequency": baseline},
    )
    results = run.folder.read_json("test.json")
    return Demonstration(run, checkpoint, dataset, results, baseline, answers, report)


def _answered(answers: Mapping[str, list[Answer]]) -> Section:
    """The questions with their answers, for the report."""
    blocks: list[Block] = []
    for question, formula in QUESTIONS.items():
        rows = [(a.label, f"{a.score:.3f}", a.mark) for a in answers[formula]]
        blocks += [Heading(question, 3), Table(["answer", "score", "is"], rows, caption=formula)]
    return Section("Questions", blocks)


def _opens(dataset: Path) -> bool:
    try:
        return bool(LibkgeDataset.open(dataset).entity_ids)
    except LmpnnError:
        return False


def _fits(checkpoint: Path, backbone: str, dataset: Path) -> bool:
    """Whether an earlier checkpoint is whole, and of this backbone and this graph."""
    try:
        opened = open_backbone(checkpoint, backbone)
    except LmpnnError:
        return False
    return opened.entity_ids == LibkgeDataset.open(dataset).entity_ids
