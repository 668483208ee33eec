"""Reports over runs: tables and plots beside the paper's numbers, as Markdown and as HTML."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lmpnn_kge.errors import LmpnnError
from lmpnn_kge.files import check_file, distinct_names, replace_file
from lmpnn_kge.methods.results import Results
from lmpnn_kge.reports.document import Block, Document, Heading, to_html, to_markdown
from lmpnn_kge.reports.published import published_graph
from lmpnn_kge.reports.record import RunRecord, read_run
from lmpnn_kge.reports.result_tables import ReportRow
from lmpnn_kge.reports.sections import (
    Runs,
    Section,
    answering,
    overview,
    probabilities,
    provenance,
    query_set,
    settings,
    training,
)

#: The name of the files of a report in a folder.
STEM = "report"

#: Run folders, or run folders by their name in the report.
Folders = Sequence[str | Path] | Mapping[str, str | Path]


def write_report(
    folders: Folders,
    out: str | Path,
    *,
    title: str | None = None,
    sections: Sequence[Section] = (),
    beside: Mapping[str, Results] | None = None,
    against: str | None = None,
) -> Path:
    """Write a report over runs, and return the file to open.

    out is a folder, for report.html, report.md and the plots, or one file: NAME.html, which needs
    no other file, or NAME.md with its plots in the same folder. `make_report` explains the rest.
    """
    out = Path(out)
    if not out.is_file():  # a file is replaced, or refused below
        check_file(out if out.suffix in (".html", ".md") and not out.is_dir() else out / STEM)
    document = make_report(folders, title=title, sections=sections, beside=beside, against=against)
    contents, last = _files(document, out)
    try:
        last.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LmpnnError(f"{last.parent} cannot be made: {error.strerror}") from error
    for file, content in contents.items():
        replace_file(content.encode(), file)
    return last


def _files(document: Document, out: Path) -> tuple[dict[Path, str], Path]:
    """The content of every file, and the file to open."""
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
    beside: Mapping[str, Results] | None = None,
    against: str | None = None,
) -> Document:
    """A report over runs, as a document.

    folders may be a mapping from the name of a run in the report; else runs have the names of their
    folders. The results of methods that a run folder has are rows, too. beside has additional rows;
    LmpnnError if one was not measured on the queries of a run. against is the graph whose published
    numbers are shown; by default, the graph of the runs. Without runs, a report has only the given
    sections.
    """
    if not folders and not sections:
        raise LmpnnError("a report needs a run: give the folder of one or more")
    graph = None if against is None else published_graph(against)
    runs = _read(folders)
    groups = _groups(runs)
    others = _others(beside or {}, groups)
    every = [row for rows in others for row in rows]
    blocks = [block for section in sections if section.first for block in section.to_blocks()]
    if runs:
        blocks += [*overview(runs), *_results(groups, others, graph), *probabilities(runs, every)]
    blocks += [block for section in sections if not section.first for block in section.to_blocks()]
    if runs:
        blocks += [*training(runs), *settings(runs), *provenance(runs)]
    if title is None and not runs:
        title = sections[0].title
    elif title is None:
        title = f"Report on {', '.join(runs) if len(runs) < 4 else f'{len(runs)} runs'}"
    return Document(title, blocks)


def _read(folders: Folders) -> Runs:
    if isinstance(folders, Mapping):
        return {name: read_run(folder) for name, folder in folders.items()}
    if not folders:
        return {}
    paths = list({os.path.realpath(folder): Path(folder) for folder in folders}.values())
    return {name: read_run(path) for name, path in zip(distinct_names(paths), paths, strict=True)}


def _groups(runs: Runs) -> list[Runs]:
    """The runs by their queries: runs with different queries cannot share a table."""
    groups: dict[str, dict[str, RunRecord]] = {}
    for name, run in runs.items():
        groups.setdefault(run.provenance.queries.sha256, {})[name] = run
    return list(groups.values())


def _others(beside: Mapping[str, Results], groups: Sequence[Runs]) -> list[list[ReportRow]]:
    """The additional rows of each group, in the first one whose queries they were measured on."""
    rows: list[list[ReportRow]] = [[] for _ in groups]
    for name, results in beside.items():
        reasons = [query_set(group).why_not(results) for group in groups]
        if None not in reasons:
            reason = reasons[0] if reasons else "there is no run"
            others = " and ".join(groups[0]) if groups else "nothing"
            raise LmpnnError(
                f"{name!r} cannot stand beside {others}: {reason}; evaluate it on the queries of "
                "the run with --queries DIR, or leave it out"
            )
        rows[reasons.index(None)].append(ReportRow.beside(name, results))
    return rows


def _results(
    groups: Sequence[Runs], others: Sequence[Sequence[ReportRow]], against: str | None
) -> list[Block]:
    """The results of all runs, with tables for each group."""
    blocks: list[Block] = []
    if len(groups) > 1:
        blocks.append(
            f"The runs were evaluated on {len(groups)} different sets of queries, each of which "
            "has its own tables; numbers of different tables cannot be compared."
        )
    for number, (group, rows) in enumerate(zip(groups, others, strict=True), start=1):
        about = next(iter(group.values())).graph
        about += f": {', '.join(group)}" if len(groups) > 1 else ""
        blocks.append(Heading(f"Answering queries on {about}"))
        blocks += answering(group, rows, against, "" if number == 1 else f"-{number}")
    return blocks
