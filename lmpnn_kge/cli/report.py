"""`lmpnn-kge report`: tables and plots over runs, and the comparison of two."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmpnn_kge.cli.options import (
    beside_option,
    device_option,
    format_option,
    out_option,
    read_beside,
)
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import printable

if TYPE_CHECKING:
    from lmpnn_kge.reports.comparison import Comparison


@click.command()
@click.argument("runs", nargs=-1, type=click.Path(), metavar="[RUN]...")
@out_option(
    "DIR|FILE",
    "Folder, NAME.html or NAME.md to write; default: RUN/report, or ./report for several runs.",
)
@click.option("--against", metavar="GRAPH", help="Show the published numbers on this graph.")
@beside_option
@click.option(
    "--compare",
    nargs=2,
    type=click.Path(),
    metavar="A B",
    help="Compare two runs, or two files of `evaluate --ranks`, with 95 % intervals of the "
    "difference of B from A. Runs are ranked on their test queries for this.",
)
@click.option("--title", metavar="TEXT", help="Heading of the report.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the samples of --compare.",
)
@format_option
@device_option
def report(
    runs: tuple[str, ...],
    out: str | None,
    against: str | None,
    beside: tuple[str, ...],
    compare: tuple[str, str] | None,
    title: str | None,
    seed: int,
    format: str | None,
    device: str,
) -> None:
    """Write tables and plots over RUNs, beside the paper's numbers, as HTML and Markdown.

    The HTML is one file that needs no other; the Markdown has its plots beside it. If the graph is
    one of the paper's, its numbers are shown without --against. With --format, the tables of
    results are printed instead, and nothing is written.
    """
    from lmpnn_kge.reports.report import make_report, write_report

    if not runs and compare is None:
        raise click.UsageError("give the folder of one or more runs, or --compare A B")
    if format is not None and out is not None:
        raise click.UsageError("--format prints tables and writes no file; leave out --out")
    comparison = None if compare is None else _compare(*compare, seed, device)
    sections = [] if comparison is None else [comparison.to_section()]
    rows = read_beside(beside)
    if format is not None:
        from lmpnn_kge.methods.text_table import Table
        from lmpnn_kge.reports.table_formats import format_tables

        document = make_report(runs, sections=sections, beside=rows, against=against)
        tables = [block for block in document.blocks if isinstance(block, Table) and block.numbers]
        click.echo(format_tables(tables, format), nl=False)
        return
    default = Path(runs[0] if len(runs) == 1 else ".") / "report"
    file = write_report(
        runs, out or default, title=title, sections=sections, beside=rows, against=against
    )
    if comparison is not None:
        from lmpnn_kge.reports.table_formats import format_table

        click.echo(format_table(comparison.to_table(), "text"))
    click.echo(f"report    {printable(str(file))}")


def _compare(first: str, second: str, seed: int, device: str) -> Comparison:
    from lmpnn_kge.reports.comparison import compare_ranks

    with terminal() as listener:
        return compare_ranks(first, second, seed=seed, device=device, listener=listener)
