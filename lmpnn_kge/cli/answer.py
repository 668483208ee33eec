"""`lmpnn-kge answer`: the exact answers of a formula over a graph."""

from __future__ import annotations

import json

import click

from lmpnn_kge.errors import printable


@click.command()
@click.argument("formula")
@click.option("--dataset", required=True, type=click.Path(), metavar="DIR", help="The graph.")
@click.option(
    "--split",
    default="test",
    metavar="SPLIT",
    show_default=True,
    help="Which edges are known: train, valid (train and valid) or test (all).",
)
@click.option("--sql", "show_sql", is_flag=True, help="Print the SQL statement instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of names.")
def answer(formula: str, dataset: str, split: str, show_sql: bool, as_json: bool) -> None:
    """Answer a FORMULA such as 'capital(?x, ?) & continent(?x, Asia)' from the edges of a graph.

    ? is what is asked, ?x is some entity. The answers are exact: nothing is predicted.
    """
    from lmpnn_kge.graph.database import sql
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.query.parser import parse
    from lmpnn_kge.query.patterns import Pattern

    if show_sql and as_json:
        raise click.UsageError("--sql prints SQL; leave --json out")
    if show_sql:
        click.echo(sql(Pattern(parse(formula))))
        return
    graph = KnowledgeGraph.open(dataset)
    rows = graph.ask(formula, split).tolist()
    if as_json:
        found = [
            {"id": graph.entity_ids[row], "label": graph.vocabulary.label(row)} for row in rows
        ]
        click.echo(json.dumps({"formula": formula, "split": split, "answers": found}, indent=2))
        return
    for row in rows:
        label, id_ = graph.vocabulary.label(row), graph.entity_ids[row]
        click.echo(printable(label if label == id_ else f"{label}  ({id_})"))
    click.echo(f"{len(rows)} {'answer' if len(rows) == 1 else 'answers'}", err=True)
