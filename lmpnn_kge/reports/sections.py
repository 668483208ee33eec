"""The sections of a report over runs, each as blocks of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmpnn_kge.methods.calibration import Reliability
from lmpnn_kge.methods.query_set import QuerySet
from lmpnn_kge.methods.results import AVERAGES, columns_of
from lmpnn_kge.methods.text_table import NONE, Cell, Table, percent
from lmpnn_kge.query.patterns import BETAE
from lmpnn_kge.reports.document import Block, Figure, Heading
from lmpnn_kge.reports.plots import (
    Curve,
    plot_curves,
    plot_missing,
    plot_reliability,
    plot_types,
)
from lmpnn_kge.reports.published import (
    BACKBONES,
    MAJOR,
    Published,
    is_published_graph,
    published,
    published_graph,
)
from lmpnn_kge.reports.record import RunRecord
from lmpnn_kge.reports.result_tables import (
    ReportRow,
    counting_table,
    facts_table,
    hits_table,
    missing_table,
    mrr_table,
    published_table,
    value_text,
)
from lmpnn_kge.runs.kept import CALIBRATED, RAW
from lmpnn_kge.training.folder import RUN, RunFolder

#: With more panels, bars or curves a picture cannot be read.
MOST_PANELS = 8

#: The names of the two reliabilities of edges.
EDGE_ROWS = {CALIBRATED: "calibrated", RAW: "sigmoids of scores"}

Runs = Mapping[str, RunRecord]  # by their name in the report


@dataclass(frozen=True)
class Section:
    """A section that a caller adds to a report; a string is a paragraph."""

    title: str
    blocks: Sequence[Block]
    first: bool = False  # whether it comes before all other sections

    def to_blocks(self) -> list[Block]:
        return [Heading(self.title), *self.blocks]


def overview(runs: Runs) -> list[Block]:
    """A line for every run: what was trained, how long and how fast."""
    rows: list[list[Cell]] = []
    for name, run in runs.items():
        done = f"{len(run.epochs)} of {run.settings.epochs}"
        best = NONE if run.best is None else str(run.best)
        speed = NONE if run.speed is None else f"{run.speed:,.0f}"
        facts = map(value_text, (run.provenance.device, run.provenance.precision))
        label = ReportRow(name, run.test, run.state).label
        rows.append([label, run.model, run.graph, done, best, *facts, speed])
    header = ["", "backbone", "graph", "epochs", "best", "device", "precision", "queries/s"]
    caption = (
        "Epochs: finished of those requested; best: the epoch whose network was kept; queries/s: "
        "in training, the median of the epochs."
    )
    return [Heading("Runs"), Table(header, rows, caption, numbers=False)]


def answering(
    runs: Runs, others: Sequence[ReportRow], against: str | None, suffix: str
) -> list[Block]:
    """The results on one set of queries; the suffix sets figures apart from those of other sets."""
    rows = rows_of(runs, others)
    having = [row for row in rows if row.results is not None]
    if not having:
        return ["There are no results on test yet."]
    first = next(iter(runs.values()))
    columns = columns_of(row.mrr for row in having)
    types = [name for name in columns if name not in AVERAGES]
    paper = [name for name in columns if name in BETAE or name in AVERAGES]
    rest = [name for name in columns if name not in paper]
    graph = against or first.graph
    other = None if against is None or _is_of(first, against) else first.graph
    references = _references(runs, graph) if paper and other is None else {}
    same_queries = first.imported is not None
    blocks: list[Block] = []
    if paper:
        blocks.append(mrr_table(paper, rows, references, same_queries=same_queries))
    if rest:
        blocks.append(mrr_table(rest, rows, {}))
    blocks.append(_origin(first, bool(references)))
    if len(having) <= MOST_PANELS:
        marks = {
            row.label(same_queries): {name: value / 100 for name, value in row.mrr.items()}
            for row in references.values()
        }
        plot = plot_types(types, {row.name: row.mrr for row in having}, marks)
        blocks.append(Figure(f"types{suffix}", plot, f"MRR on test by query type, {first.graph}."))
    blocks += [Heading("Hits", 3), hits_table(types, having)]
    blocks += _missing(types, having, suffix)
    numbers = counting_table(columns, having)
    if numbers is not None:
        blocks += [Heading("Numbers of answers", 3), numbers]
    if references or other is not None:
        graph = published_graph(graph)
        blocks += [Heading(f"Published on {graph}", 3), published_table(graph, other)]
    return blocks


def query_set(runs: Runs) -> QuerySet:
    """The test queries that runs of one group share."""
    source = next(iter(runs.values())).provenance
    tested = (run.test.counts for run in runs.values() if run.test is not None)
    return QuerySet(source.queries.graph, source.queries.sha256, source.graph, next(tested, {}))


def _is_of(run: RunRecord, graph: str) -> bool:
    """Whether the graph of a run is one of the paper's, by its name or by its sizes."""
    names = RunFolder.open(run.path, RUN).vocabulary()
    return is_published_graph(graph, run.graph, names.num_entities, names.num_relations)


def rows_of(runs: Runs, others: Sequence[ReportRow]) -> list[ReportRow]:
    """Every run, followed by the methods that were evaluated on its checkpoint; then the others.

    A row of the others replaces a method of the same name.
    """
    rows = []
    for name, run in runs.items():
        rows.append(ReportRow(name, run.test, run.state))
        own = query_set({name: run})
        for method, results in run.methods.items():
            reason = own.why_not(results)
            shown = results if reason is None else None
            rows.append(ReportRow(f"{name}, {method}", shown, reason))
    named = {row.name for row in others}
    return [*(row for row in rows if row.name not in named), *others]


def probabilities(runs: Runs, others: Sequence[ReportRow]) -> list[Block]:
    """How reliable probabilities of answers and of edges are; nothing if there are none."""
    answers = {
        row.name: row.results.reliability
        for row in rows_of(runs, others)
        if row.results is not None and row.results.reliability is not None
    }
    edges = {
        f"{name}, {EDGE_ROWS[kind]}": reliability
        for name, run in runs.items()
        for kind, reliability in run.edges.items()
    }
    if not answers and not edges:
        return []
    return [
        Heading("Probabilities"),
        "Probabilities are fitted on valid and measured on test. They are reliable if, of the "
        "claims that are given the probability p, about p · 100 % hold. The expected calibration "
        "error is the mean distance of the two.",
        *_reliability(
            "answers", answers, "the 10 best entities of test queries that are not known answers"
        ),
        *_reliability(
            "edges", edges, "the 10 best unknown tails of (h, r, ?) that have an answer in test"
        ),
    ]


def _reliability(what: str, rows: Mapping[str, Reliability], claims: str) -> list[Block]:
    if not rows:
        return []
    cells: list[list[Cell]] = [
        [name, f"{row.error:.4f}", percent([row.share]), f"{row.count:,.0f}"]
        for name, row in rows.items()
    ]
    header = ["", "expected calibration error", "hold, percent", "claims"]
    caption = f"Claims: {claims}."
    blocks: list[Block] = [Heading(what.capitalize(), 3), Table(header, cells, caption)]
    if len(rows) <= MOST_PANELS:
        caption = f"Reliability of the probabilities of {what} on test."
        blocks.append(Figure(f"reliability-{what}", plot_reliability(rows), caption))
    return blocks


def _references(runs: Runs, graph: str) -> dict[str, Published]:
    """The published row of LMPNN to compare each run with, if there is one."""
    nearest = {name: _most_alike(run, graph) for name, run in runs.items()}
    return {name: row for name, row in nearest.items() if row is not None}


def _most_alike(run: RunRecord, graph: str) -> Published | None:
    """The row of its backbone as LibKGE trained it, else that of the main table."""
    rows = published(graph, table=BACKBONES, model="LMPNN", backbone=run.model)
    rows += published(graph, table=MAJOR, model="LMPNN")
    return rows[0] if rows else None


def _origin(run: RunRecord, compared: bool) -> str:
    """A sentence on whether these queries are those of the published rows."""
    if run.imported is None:
        text = "The queries were sampled here, by BetaE's protocol; they are not the published ones"
        more = ", so that numbers of published rows cannot be compared with those above them"
    else:
        text = f"The queries were imported from the folder {run.imported}"
        more = (
            "; published rows are on BetaE's own queries: compare them only if these are the same"
        )
    return f"{text}{more if compared else ''}."


def _missing(types: Sequence[str], rows: Sequence[ReportRow], suffix: str) -> list[Block]:
    table = missing_table(types, rows)
    if table is None:
        return []
    blocks: list[Block] = [Heading("Missing edges", 3), table]
    numbers = sorted({edges for row in rows for edges in row.missing})
    varying = [
        name
        for name in types
        if sum(any(name in row.missing.get(edges, {}) for row in rows) for edges in numbers) > 1
    ]
    if varying and len(rows) <= MOST_PANELS:
        bars = {
            row.name: {f"{edges} missing": row.missing.get(edges, {}) for edges in numbers}
            for row in rows
        }
        caption = "MRR on test by the number of missing edges, for the types in which it varies."
        blocks.append(Figure(f"missing{suffix}", plot_missing(varying, bars), caption))
    return blocks


def training(runs: Runs) -> list[Block]:
    """The curves of loss and validation."""
    curves = [_curve(name, run) for name, run in runs.items() if run.epochs]
    if not curves:
        return [Heading("Training"), "No epoch is finished yet."]
    if len(curves) > MOST_PANELS:
        return [Heading("Training"), "There are too many runs to draw; report on a few of them."]
    caption = (
        "By epoch: the training loss, and MRR on valid; a dot marks the network that was kept."
    )
    return [Heading("Training"), Figure("training", plot_curves(curves), caption)]


def _curve(name: str, run: RunRecord) -> Curve:
    valid: dict[str, dict[int, float]] = {}
    for epoch in run.epochs:
        if epoch.valid is not None:
            averages = {key: value for key, value in epoch.valid.mrr.items() if key in AVERAGES}
            for key, value in (averages or {"mean of types": epoch.valid.mean}).items():
                valid.setdefault(key, {})[epoch.number] = value
    return Curve(name, {epoch.number: epoch.loss for epoch in run.epochs}, valid, run.best)


def settings(runs: Runs) -> list[Block]:
    """All settings; those that differ between the runs come first."""
    columns = {name: vars(run.settings) for name, run in runs.items()}
    keys = list(next(iter(columns.values())))
    differing = [key for key in keys if len({repr(values[key]) for values in columns.values()}) > 1]
    blocks: list[Block] = [Heading("Settings")]
    if differing:
        blocks += [Heading("Differences", 3), facts_table(columns, differing), Heading("All", 3)]
    elif len(columns) > 1:
        blocks.append("The runs have the same settings.")
        columns = {"all runs": next(iter(columns.values()))}
    return [*blocks, facts_table(columns, keys)]


def provenance(runs: Runs) -> list[Block]:
    """The files, versions and commands that the runs were made with."""
    columns = {name: flat_facts(run.provenance.to_json()) for name, run in runs.items()}
    keys = dict.fromkeys(key for facts in columns.values() for key in facts)
    shown = [key for key in keys if key not in ("kind", "format")]
    return [Heading("Provenance"), facts_table(columns, shown)]


def flat_facts(facts: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested facts under names such as `checkpoint.file`."""
    flat: dict[str, Any] = {}
    for key, value in facts.items():
        nested = isinstance(value, dict) and prefix.count(".") < 4
        flat |= flat_facts(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return flat
