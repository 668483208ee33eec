"""Reports over runs: tables and plots beside the paper's numbers, as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import LmpnnError
from lmpnn_kge.files import write_whole
from lmpnn_kge.query.patterns import BETAE
from lmpnn_kge.reports.document import (
    Block,
    Cell,
    Document,
    Figure,
    Heading,
    Table,
    to_html,
    to_markdown,
)
from lmpnn_kge.reports.plots import Curve, plot_curves, plot_missing, plot_types
from lmpnn_kge.reports.published import BACKBONES, MAJOR, Published, published, published_graph
from lmpnn_kge.reports.record import RunRecord, read_results, read_run
from lmpnn_kge.reports.tables import (
    NONE,
    Row,
    facts_table,
    hits_table,
    missing_table,
    mrr_table,
    published_name,
    published_table,
    types_of,
    value_text,
)

#: More panels, bars or curves than that are no picture any more.
MOST_PANELS = 8

#: The name of the files of a report in a folder.
STEM = "report"


Folders = Sequence[str | Path] | Mapping[str, str | Path]

Runs = Mapping[str, RunRecord]  # by the name they have in the report


@dataclass(frozen=True)
class Section:
    """What a caller adds to a report; a string is a paragraph."""

    title: str
    blocks: Sequence[Block]
    first: bool = False  # whether it comes before everything else


def write_report(
    folders: Folders,
    out: str | Path,
    *,
    title: str | None = None,
    sections: Sequence[Section] = (),
    beside: Mapping[str, Mapping[str, Any]] | None = None,
    against: str | None = None,
) -> Path:
    """Write a report over runs, and give the file to look at.

    out is a folder, for report.html, report.md and the plots, or one file: NAME.html, which needs
    no other, or NAME.md with its plots beside it. The rest is as `make_report` takes it.
    """
    place = Path(out)
    document = make_report(folders, title=title, sections=sections, beside=beside, against=against)
    contents, last = _files(document, place)
    try:
        last.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LmpnnError(f"{last.parent} cannot be made: {error.strerror}") from error
    for file, content in contents.items():
        write_whole(file, content.encode())
    return last


def _files(document: Document, out: Path) -> tuple[dict[Path, str], Path]:
    """What to write, and the file to look at."""
    if not out.is_dir() and out.suffix == ".html":
        return {out: to_html(document)}, out
    single = not out.is_dir() and out.suffix == ".md"
    if out.exists() and not out.is_dir() and not single:
        raise LmpnnError(f"{out} is a file; name a folder, or a file that ends in .html or .md")
    folder, stem = (out.parent, out.stem) if single else (out, STEM)
    plots = {folder / f"{stem}-{figure.name}.svg": figure.svg for figure in document.figures}
    markdown = folder / f"{stem}.md"
    contents = {**plots, markdown: to_markdown(document, lambda f: f"{stem}-{f.name}.svg")}
    if single:
        return contents, markdown
    page = folder / f"{stem}.html"
    return {**contents, page: to_html(document)}, page


def make_report(
    folders: Folders,
    *,
    title: str | None = None,
    sections: Sequence[Section] = (),
    beside: Mapping[str, Mapping[str, Any]] | None = None,
    against: str | None = None,
) -> Document:
    """A report over runs, as a document.

    folders may have the names of the runs in the report, else they are called like their folders;
    beside has further rows, as `evaluate --json` prints them, on the queries of the first run;
    against is the graph whose published numbers are shown, if the runs' own name does not say.
    """
    if not folders:
        raise LmpnnError("a report needs a run: give the folder of one or more")
    graph = None if against is None else published_graph(against)
    runs = _read(folders)
    others = [Row(name, read_results(found, name)) for name, found in (beside or {}).items()]
    blocks = _added(section for section in sections if section.first)
    blocks += [Heading("Runs"), _overview(runs)]
    groups = _groups(runs)
    if len(groups) > 1:
        blocks.append(
            f"The runs were evaluated on {len(groups)} different sets of queries, each of which "
            "has its own tables; numbers of different tables cannot be compared."
        )
    for place, group in enumerate(groups):
        about = next(iter(group.values())).graph + (f": {', '.join(group)}" if groups[1:] else "")
        blocks.append(Heading(f"Answering queries on {about}"))
        blocks += _answering(group, [] if place else others, graph, f"-{place + 1}" * bool(place))
    blocks += _added(section for section in sections if not section.first)
    blocks += [*_training(runs), *_settings(runs), *_provenance(runs)]
    if title is None:
        title = f"Report on {', '.join(runs) if len(runs) < 4 else f'{len(runs)} runs'}"
    return Document(title, blocks)


def _read(folders: Folders) -> Runs:
    if isinstance(folders, Mapping):
        return {name: read_run(folder) for name, folder in folders.items()}
    places = list({Path(folder).resolve(): Path(folder) for folder in folders}.values())
    return {name: read_run(p) for name, p in zip(tell_apart(places), places, strict=True)}


def _added(sections: Iterable[Section]) -> list[Block]:
    return [b for section in sections for b in (Heading(section.title), *section.blocks)]


def tell_apart(paths: Sequence[Path]) -> list[str]:
    """The names of files or folders, with as many of their parents as it takes."""
    parts = [path.resolve().parts for path in paths]
    depths = range(1, max(map(len, parts)) + 1)
    candidates = (["/".join(found[-depth:]) for found in parts] for depth in depths)
    return next(names for names in candidates if len(set(names)) == len(names))


def _groups(runs: Runs) -> list[Runs]:
    """Runs with the same queries together."""
    groups: dict[str, dict[str, RunRecord]] = {}
    for name, run in runs.items():
        groups.setdefault(run.facts["queries"]["sha256"], {})[name] = run
    return list(groups.values())


def _overview(runs: Runs) -> Table:
    rows: list[list[Cell]] = []
    for name, run in runs.items():
        done = f"{len(run.epochs)} of {run.settings['epochs']}"
        best = NONE if run.best is None else str(run.best.number)
        speed = NONE if run.speed is None else f"{run.speed:,.0f}"
        facts = (value_text(run.facts.get(key)) for key in ("device", "precision"))
        label = Row(name, run.test, run.state).label
        rows.append([label, run.model, run.graph, done, best, *facts, speed])
    header = ["", "backbone", "graph", "epochs", "best", "device", "precision", "queries/s"]
    caption = (
        "Epochs: finished of those asked for; best: the epoch whose network was kept; queries/s: "
        "in training, the median of the epochs."
    )
    return Table(header, rows, caption, numbers=False)


def _answering(runs: Runs, others: Sequence[Row], against: str | None, suffix: str) -> list[Block]:
    """All about the results on one set of queries."""
    rows = [*(Row(name, run.test, run.state) for name, run in runs.items()), *others]
    first = next(iter(runs.values()))
    blocks: list[Block] = []
    having = [row for row in rows if row.results is not None]
    if not having:
        return ["There are no results on test yet."]
    types = types_of(having)
    paper = [name for name in BETAE if name in types]
    rest = [name for name in types if name not in BETAE]
    references = _references(runs, against or first.graph) if paper else {}
    if paper:
        averages = [name for name in ("A_P", "A_N") if any(name in row.mrr for row in having)]
        blocks.append(mrr_table([*paper, *averages], rows, references))
    if rest:
        blocks.append(mrr_table(rest, rows, {}))
    blocks.append(_origin(first, bool(references)))
    marks = {
        published_name(row): {name: value / 100 for name, value in row.mrr.items()}
        for row in references.values()
    }
    if len(having) <= MOST_PANELS:
        plot = plot_types(types, {row.name: row.mrr for row in having}, marks)
        blocks.append(Figure(f"types{suffix}", plot, f"MRR on test by query type, {first.graph}."))
    blocks += [Heading("Hits", 3), hits_table(types, having)]
    blocks += _missing(types, having, suffix)
    if references:
        graph = next(iter(references.values())).graph
        blocks += [Heading(f"Published on {graph}", 3), published_table(graph)]
    return blocks


def _references(runs: Runs, graph: str) -> dict[str, Published]:
    """The published row of LMPNN to compare each run with, where there is one."""
    found = ((name, _most_alike(run, graph)) for name, run in runs.items())
    return {name: row for name, row in found if row is not None}


def _most_alike(run: RunRecord, graph: str) -> Published | None:
    """The row of its backbone as LibKGE trained it, else that of the main table."""
    rows = published(graph, table=BACKBONES, model="LMPNN", backbone=run.model)
    rows += published(graph, table=MAJOR, model="LMPNN")
    return rows[0] if rows else None


def _origin(run: RunRecord, compared: bool) -> str:
    """Whether these queries are those of the published rows."""
    if run.imported is None:
        text = "The queries were sampled here, by BetaE's protocol; they are not the published ones"
        more = ", so what differs from a published row is not the model alone"
    else:
        text = f"The queries were imported from the folder {run.imported}"
        more = "; published rows are on BetaE's own queries, which these are if that folder is"
    return f"{text}{more if compared else ''}."


def _missing(types: Sequence[str], rows: Sequence[Row], suffix: str) -> list[Block]:
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
        caption = "MRR on test by the number of missing edges, for the types where it varies."
        blocks.append(Figure(f"missing{suffix}", plot_missing(varying, bars), caption))
    return blocks


def _training(runs: Runs) -> list[Block]:
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
            averages = {"A_P": epoch.valid.positive, "A_N": epoch.valid.negative}
            known = {key: value for key, value in averages.items() if value is not None}
            for key, value in (known or {"mean of types": epoch.valid.mean}).items():
                valid.setdefault(key, {})[epoch.number] = value
    best = None if run.best is None else run.best.number
    return Curve(name, {epoch.number: epoch.loss for epoch in run.epochs}, valid, best)


def _settings(runs: Runs) -> list[Block]:
    columns = {name: run.settings for name, run in runs.items()}
    keys = list(next(iter(columns.values())))
    differing = [key for key in keys if len({repr(found[key]) for found in columns.values()}) > 1]
    blocks: list[Block] = [Heading("Settings")]
    if differing:
        blocks += [Heading("What differs", 3), facts_table(columns, differing), Heading("All", 3)]
    elif len(columns) > 1:
        blocks.append("The runs have the same settings.")
        columns = {"all runs": next(iter(columns.values()))}
    return [*blocks, facts_table(columns, keys)]


def _provenance(runs: Runs) -> list[Block]:
    columns = {name: _flat(run.facts) for name, run in runs.items()}
    keys = dict.fromkeys(key for found in columns.values() for key in found)
    shown = [key for key in keys if key not in ("kind", "format")]
    return [Heading("Provenance"), facts_table(columns, shown)]


def _flat(facts: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested facts under names such as `checkpoint.file`."""
    found: dict[str, Any] = {}
    for key, value in facts.items():
        nested = isinstance(value, dict) and prefix.count(".") < 4
        found |= _flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return found
