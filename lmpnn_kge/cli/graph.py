"""`lmpnn-kge graph`: a graph at a glance."""

from __future__ import annotations

import json

import click

from lmpnn_kge.cli.options import json_option


@click.command()
@click.argument("dataset", metavar="DIR", type=click.Path())
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
    """Describe the graph in the folder DIR: its size, its relations, and what it lacks.

    Lines that begin with ! say what to know before training: a missing split, entities without a
    training triple, repeated triples, and relations by which test triples follow from training
    triples because they repeat or invert others. All counts are exact.
    """
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph

    profile = KnowledgeGraph.open(dataset).describe()
    click.echo(json.dumps(profile.to_json(), indent=2) if as_json else profile.to_text(most))
