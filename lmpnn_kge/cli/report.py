"""`lmpnn-kge report`: tables and plots over runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from lmpnn_kge.errors import LmpnnError, printable, short


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
@click.option(
    "-o",
    "--out",
    type=click.Path(),
    metavar="DIR|FILE",
    help="A folder, NAME.html or NAME.md; else RUN/report, or ./report for several runs.",
)
@click.option("--against", metavar="GRAPH", help="Show what is published on this graph.")
@click.option(
    "--beside",
    multiple=True,
    metavar="NAME=FILE",
    help="A further row on the same queries, from what `evaluate --json` printed.",
)
@click.option("--title", metavar="TEXT", help="The heading of the report.")
def report(
    runs: tuple[str, ...],
    out: str | None,
    against: str | None,
    beside: tuple[str, ...],
    title: str | None,
) -> None:
    """Write tables and plots over RUNs, beside the paper's numbers, as HTML and Markdown.

    The HTML is one file that needs no other; the Markdown has its plots beside it. Runs on graphs
    of the paper are compared with it without --against.
    """
    from lmpnn_kge.report import write_report

    place = Path(out) if out is not None else Path(runs[0] if len(runs) == 1 else ".") / "report"
    rows = dict(map(_row, beside))
    file = write_report(runs, place, title=title, beside=rows, against=against)
    click.echo(f"report    {printable(str(file))}")


def _row(text: str) -> tuple[str, Any]:
    """NAME=FILE as a name and what the file holds."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise click.UsageError(f"--beside {short(text)!r} is not of the form NAME=FILE")
    try:
        return name, json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LmpnnError(f"{file} cannot be read: {short(str(error))}") from error
