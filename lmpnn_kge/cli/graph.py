"""`lmpnn-kge graph`: a graph at a glance."""

from __future__ import annotations

import json

import click

from lmpnn_kge.cli.options import json_option
from lmpnn_kge.errors import printable


@click.command()
@click.argument("dataset", metavar="DIR|FILE", type=click.Path(allow_dash=True))
@click.option(
    "-n",
    "most",
    default=10,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of relations to print, those with most triples first.",
)
@json_option
def graph(dataset: str, most: int, as_json: bool) -> None:
    """Describe a graph, a folder or a file of triples: its relations, and what it lacks.

    Lines that begin with ! say what to know before training: a missing split, entities without a
    training triple, repeated triples, and relations by which test triples follow from training
    triples because they repeat or invert others. All counts are exact.
    """
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph

    opened = KnowledgeGraph.open(dataset)
    for note in opened.notes:
        click.echo(f"note: {printable(note)}", err=True)
    profile = opened.describe()
    click.echo(json.dumps(profile.to_json(), indent=2) if as_json else profile.to_text(most))
