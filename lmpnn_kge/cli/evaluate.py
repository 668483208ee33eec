"""`lmpnn-kge evaluate`: the paper's row for a run."""

from __future__ import annotations

import json
from typing import Any

import click

from lmpnn_kge.cli.options import device_option, json_option, moved_checkpoint_option
from lmpnn_kge.cli.progress import bar
from lmpnn_kge.errors import printable


@click.command()
@click.argument("run", type=click.Path())
@click.option("--split", default="test", show_default=True, metavar="SPLIT", help="valid or test.")
@click.option("--queries", type=click.Path(), metavar="DIR", help="Other queries than its own.")
@click.option(
    "--union",
    type=click.Choice(["dnf", "merge"]),
    help="Disjunctions: parts apart and the best taken, or as a conjunction; else as trained.",
)
@moved_checkpoint_option
@device_option
@json_option
def evaluate(
    run: str,
    split: str,
    queries: str | None,
    union: Any,
    checkpoint: str | None,
    device: str,
    as_json: bool,
) -> None:
    """Rank the hard answers of a split with the network of RUN: MRR and Hits by query type."""
    from lmpnn_kge.results import as_text
    from lmpnn_kge.run import Run

    opened = Run.open(run, checkpoint=checkpoint, device=device)
    asked = opened.queries(split, queries)
    for note in opened.notes:  # before the wait, and before the figures that they are about
        click.echo(f"note: {printable(note)}", err=True)
    with bar() as progress:
        task = progress.add_task("evaluating", total=None)

        def show(name: str, done: int) -> None:
            progress.update(task, description=f"evaluating {printable(name)}")

        results = opened.evaluate(split, queries=asked, union=union, progress=show)
    if as_json:
        click.echo(json.dumps(results, indent=2))
    else:
        click.echo(f"{split}, MRR in per cent:\n\n{as_text(results)}")
