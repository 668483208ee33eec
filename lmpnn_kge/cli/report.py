"""`lmpnn-kge report`: tables and plots over runs."""

from __future__ import annotations

from pathlib import Path

import click

from lmpnn_kge.cli.options import beside_option, out_option, read_beside
from lmpnn_kge.errors import printable


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
@out_option(
    "DIR|FILE",
    "Folder, NAME.html or NAME.md to write; default: RUN/report, or ./report for several runs.",
)
@click.option("--against", metavar="GRAPH", help="Show the published numbers on this graph.")
@beside_option
@click.option("--title", metavar="TEXT", help="Heading of the report.")
def report(
    runs: tuple[str, ...],
    out: str | None,
    against: str | None,
    beside: tuple[str, ...],
    title: str | None,
) -> None:
    """Write tables and plots over RUNs, beside the paper's numbers, as HTML and Markdown.

    The HTML is one file that needs no other; the Markdown has its plots beside it. If the graph is
    one of the paper's, its numbers are shown without --against.
    """
    from lmpnn_kge.reports.report import write_report

    default = Path(runs[0] if len(runs) == 1 else ".") / "report"
    rows = read_beside(beside)
    file = write_report(runs, out or default, title=title, beside=rows, against=against)
    click.echo(f"report    {printable(str(file))}")
