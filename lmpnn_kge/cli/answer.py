"""`lmpnn-kge answer`: the exact answers of a formula over a graph."""

from __future__ import annotations

import json

import click

from lmpnn_kge.cli.options import json_option, timeout_option
from lmpnn_kge.deadline import time_limit
from lmpnn_kge.errors import printable


@click.command()
@click.argument("formula")
@click.option(
    "--dataset", required=True, type=click.Path(), metavar="DIR", help="Folder of the graph."
)
@click.option(
    "--split",
    default="test",
    metavar="SPLIT",
    show_default=True,
    help="Edges that are known: train, valid (train and valid) or test (all).",
)
@click.option(
    "--sql", "show_sql", is_flag=True, help="Print the SQL statement instead of running it."
)
@timeout_option("a formula")
@json_option
def answer(
    formula: str, dataset: str, split: str, show_sql: bool, timeout: float, as_json: bool
) -> None:
    """Answer a FORMULA such as 'capital(?x, ?) & continent(?x, Asia)' from the edges of a graph.

    ? marks the answer, and ?x stands for some entity. The answers are exact: nothing is predicted.
    """
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.query.parser import parse
    from lmpnn_kge.query.patterns import Pattern
    from lmpnn_kge.query.sql import pattern_sql

    if show_sql and as_json:
        raise click.UsageError("--sql prints SQL; leave --json out")
    if show_sql:
        click.echo(pattern_sql(Pattern(parse(formula))))
        return
    graph = KnowledgeGraph.open(dataset)
    names = graph.vocabulary
    with time_limit(timeout):
        rows = graph.answer_rows(formula, split).tolist()
    answers = [{"id": names.entity_ids[row], "label": names.label(row)} for row in rows]
    if as_json:
        click.echo(json.dumps({"formula": formula, "split": split, "answers": answers}, indent=2))
        return
    for item in answers:
        id_ = "" if item["label"] == item["id"] else f"  ({item['id']})"
        click.echo(printable(f"{item['label']}{id_}"))
    click.echo(f"{len(answers)} {'answer' if len(answers) == 1 else 'answers'}", err=True)
