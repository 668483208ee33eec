"""`lmpnn-kge ask`: a formula in, ranked entities out, the known told from the predicted."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

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
    help="How many answers.",
)
@click.option("--predicted", is_flag=True, help="Only answers that are not known.")
@click.option("--dataset", type=click.Path(), metavar="DIR", help="Its graph, if it has moved.")
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

    An answer is known if it follows from the edges that were trained on, and predicted if not; a
    prediction is confirmed if it follows from the edges that were held out. What a formula denies
    and the edges that were trained on assert is left out. --json has id, label, score, mark and,
    by the graph, known (by the edges that were trained on) and confirmed (by all).
    """
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.runs.ask import ask as ask_run
    from lmpnn_kge.runs.run import Run

    opened = Run.open(run, checkpoint=checkpoint, device=device)
    folder = dataset or opened.folder.facts["dataset"]
    there = folder is not None and (dataset is not None or Path(folder).is_dir())
    graph = KnowledgeGraph.open(folder) if there else None
    answers = ask_run(opened, formula, most, graph, predicted=predicted)
    for note in opened.notes:
        click.echo(f"note: {printable(note)}", err=True)
    if graph is None:
        click.echo("note: without the dataset (--dataset DIR) nothing is marked as known", err=True)
    if as_json:
        rows = [{**dataclasses.asdict(answer), "mark": answer.mark} for answer in answers]
        click.echo(json.dumps(rows, indent=2))
        return
    if not answers:
        click.echo("note: the graph refutes every entity", err=True)
    width = max((len(printable(answer.label)) for answer in answers), default=0)
    for answer in answers:
        id_ = "" if answer.id == answer.label else f"  ({printable(answer.id)})"
        click.echo(
            f"{answer.score:6.3f}  {printable(answer.label):<{width}}  {answer.mark}{id_}".rstrip()
        )
