"""The demonstration: graph, embedding, queries, network, figures, answers and a reason.

Finished parts that an earlier demonstration left in the folder are reused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lmpnn_kge.backbones.discovery import backbone_class
from lmpnn_kge.backbones.messages import ScoreType
from lmpnn_kge.backbones.open import open_backbone
from lmpnn_kge.errors import DatasetError, LmpnnError, RunError
from lmpnn_kge.files import replace_file
from lmpnn_kge.files.leftovers import remove_leftovers_in
from lmpnn_kge.graph.geography import NAME, is_current, write_geography
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.methods.names import FREQUENCY, HYBRID, SEARCH
from lmpnn_kge.methods.results import Results
from lmpnn_kge.methods.text_table import Table
from lmpnn_kge.queries.sample import sample_store
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.draw_reasons import draw_reasons
from lmpnn_kge.reports.document import Block, Figure, Heading
from lmpnn_kge.reports.report import write_report
from lmpnn_kge.reports.sections import Section
from lmpnn_kge.runs.answer import Answer, AnswerList
from lmpnn_kge.runs.baselines import evaluate_method
from lmpnn_kge.runs.inputs import queries_beside
from lmpnn_kge.runs.kept import sound_results
from lmpnn_kge.runs.pretrain import pretrain
from lmpnn_kge.runs.run import Run
from lmpnn_kge.runs.train import train
from lmpnn_kge.training.penalty import USUAL
from lmpnn_kge.work.listener import SILENT, Listener

#: Questions in words, and as formulas.
QUESTIONS = {
    "Neighbours of Kenya that speak English": "borders(?, Kenya) & speaks(?, English)",
    "Neighbours of Germany without the euro": "borders(Germany, ?) & !currency(?, Euro)",
    "Swiss cities around Zürich": "city_in(?, Switzerland) & near(?, Zürich)",
    "Capitals of Brazil's neighbours that speak Spanish": (
        "capital(?x, ?) & borders(?x, Brazil) & speaks(?x, Spanish)"
    ),
}

#: The question whose answers are explained: the only one with a variable besides `?`.
EXPLAINED = [*QUESTIONS.values()][-1]

#: Answers shown for each question.
SHOWN = 6


@dataclass(frozen=True)
class Demonstration:
    """The run that was trained, its results and its answers."""

    run: Run
    checkpoint: Path
    results: Mapping[str, Results]  # on the same test queries, by method
    answers: Mapping[str, AnswerList]  # by formula
    explained: Answer  # an answer with its reason, which `why` shows
    why: Path
    report: Path


def demonstrate(
    folder: str | Path, backbone: str, device: str = "auto", listener: Listener = SILENT
) -> Demonstration:
    """Run the whole demonstration in a folder, with any installed backbone."""
    folder = Path(folder)
    remove_leftovers_in(folder)
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
    _check_queries(graph, listener)
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
    results = {"LMPNN": run.results}
    results |= {method: _tested(run, method, listener) for method in (SEARCH, HYBRID)}
    baseline = evaluate_method(
        FREQUENCY, checkpoint, backbone=backbone, dataset=dataset, device=device
    )
    asked = [*QUESTIONS.values()]
    answers = dict(zip(asked, run.ask(asked, SHOWN, listener=listener), strict=True))
    answers[EXPLAINED] = run.ask(EXPLAINED, SHOWN, explain=1, listener=listener)
    explained = _to_explain(answers[EXPLAINED])
    picture, why = draw_reasons(explained.reasons), folder / "why.svg"
    replace_file(picture.encode(), why)
    report = write_report(
        [run.folder.path],
        folder / "report",
        title="LMPNN on countries and cities",
        sections=[_answer_section(answers, explained, picture)],
        beside={FREQUENCY: baseline},
    )
    results[FREQUENCY] = baseline
    return Demonstration(run, checkpoint, results, answers, explained, why, report)


def _tested(run: Run, method: str, listener: Listener) -> Results:
    """The results of a method on test, which the run keeps."""
    results = sound_results(run.folder, method, listener)
    if results is None:
        results = run.evaluate("test", method=method, listener=listener)
        run.keep_results(method, results)
    return results


def _to_explain(answers: AnswerList) -> Answer:
    """The best predicted answer that has a reason, or a known one if there is none."""
    return min((a for a in answers if a.reasons), key=lambda answer: bool(answer.known))


def _answer_section(answers: Mapping[str, AnswerList], explained: Answer, picture: str) -> Section:
    """The questions with their answers, for the report."""
    blocks: list[Block] = []
    for question, formula in QUESTIONS.items():
        pairs = zip(answers[formula], answers[formula].figures, strict=True)
        rows = [(answer.label, figure, answer.mark) for answer, figure in pairs]
        header = ["answer", "probability", "is"]
        blocks += [Heading(question, 3), Table(header, rows, caption=formula)]
    caption = f"Why {explained.label} may answer the last question."
    return Section("Questions", [*blocks, Figure("why", picture, caption)])


def _open_graph(dataset: Path) -> KnowledgeGraph:
    """The embedded graph, written again if an earlier one is damaged."""
    try:
        older = not is_current(dataset)
        return KnowledgeGraph.open(dataset if older else write_geography(dataset))
    except LmpnnError:
        return KnowledgeGraph.open(write_geography(dataset))


def _check_queries(graph: KnowledgeGraph, listener: Listener) -> None:
    """Sample the queries again if those of an earlier demonstration are damaged."""
    folder = queries_beside(graph)
    if not folder.exists():
        return
    try:
        QueryStore.open(folder).verify()
    except DatasetError as error:
        listener.note(f"{error}; sampling the queries again")
        sample_store(graph, folder, listener=listener)


def _fits(checkpoint: Path, backbone: str, graph: KnowledgeGraph) -> bool:
    """Whether an earlier checkpoint can be read, and is of this backbone and this graph."""
    try:
        opened = open_backbone(checkpoint, backbone)
    except LmpnnError:
        return False
    return opened.has_names and opened.vocabulary.has_ids_of(graph.vocabulary)
