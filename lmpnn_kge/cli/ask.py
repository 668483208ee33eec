"""`lmpnn-kge ask`: a formula in, ranked entities out, each known or predicted."""

from __future__ import annotations

import dataclasses
import json

import click

from lmpnn_kge.cli.options import device_option, json_option, moved_checkpoint_option
from lmpnn_kge.errors import printable


@click.command()
@click.argument("run", type=click.Path())
@click.argument("formula")
@click.option(
    "-k",
    "most",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of answers.",
)
@click.option("--predicted", is_flag=True, help="Print only answers that are not known.")
@click.option(
    "--dataset", type=click.Path(), metavar="DIR", help="Graph of the run, if it has moved."
)
@moved_checkpoint_option
@device_option
@json_option
def ask(
    run: str,
    formula: str,
    most: int,
    predicted: bool,
    dataset: str | None,
    checkpoint: str | None,
    device: str,
    as_json: bool,
) -> None:
    """Answer a FORMULA such as 'borders(Germany, ?) & !currency(?, Euro)' with the network of RUN.

    An answer is known if it follows from the training edges, and predicted otherwise. A prediction
    is confirmed if it follows from the edges that were held out. Entities that violate a negated
    condition in the training edges are omitted. --json prints id, label, score, mark, known
    (follows from training edges) and confirmed (follows from all edges).
    """
    from lmpnn_kge.runs.run import Run

    opened = Run.open(run, checkpoint=checkpoint, dataset=dataset, device=device)
    answers = opened.ask(formula, most, predicted=predicted)
    for note in opened.notes:
        click.echo(f"note: {printable(note)}", err=True)
    if opened.graph is None:
        click.echo("note: without the graph (--dataset DIR) no answer is marked as known", err=True)
    if as_json:
        rows = [{**dataclasses.asdict(answer), "mark": answer.mark} for answer in answers]
        click.echo(json.dumps(rows, indent=2))
        return
    if not answers:
        click.echo("note: the training edges rule out every entity", err=True)
    width = max((len(printable(answer.label)) for answer in answers), default=0)
    for answer in answers:
        id_ = "" if answer.id == answer.label else f"  ({printable(answer.id)})"
        click.echo(
            f"{answer.score:6.3f}  {printable(answer.label):<{width}}  {answer.mark}{id_}".rstrip()
        )
