"""`lmpnn-kge answer`: the exact answers of a formula over a graph."""

from __future__ import annotations

import json
from typing import Any

import click

from lmpnn_kge.cli.options import engine_options, json_option, timeout_option
from lmpnn_kge.deadline import time_limit
from lmpnn_kge.errors import printable


@click.command()
@click.argument("formula")
@click.option(
    "--dataset",
    required=True,
    type=click.Path(allow_dash=True),
    metavar="DIR|FILE",
    help="Graph: a dataset folder, or a file of triples.",
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
@click.option(
    "--ntriples",
    "as_triples",
    is_flag=True,
    help="Print N-Triples: the edges by which each entity answers, and their labels.",
)
@timeout_option("a formula")
@engine_options
@json_option
def answer(
    formula: str,
    dataset: str,
    split: str,
    show_sql: bool,
    as_triples: bool,
    timeout: float,
    as_json: bool,
    **engine: Any,
) -> None:
    """Answer a FORMULA such as 'capital(?x, ?) & continent(?x, Asia)' from the edges of a graph.

    ? marks the answer, and ?x stands for some entity. The formula may also be a SPARQL query that
    selects one variable. The answers are exact: nothing is predicted.
    """
    from lmpnn_kge.graph.engine import EngineOptions
    from lmpnn_kge.graph.formats.ntriples import ntriples
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.query.parser import parse
    from lmpnn_kge.query.patterns import Pattern
    from lmpnn_kge.query.sql import pattern_sql

    options = EngineOptions(**engine)
    if show_sql + as_json + as_triples > 1:
        raise click.UsageError("give one of --sql, --json and --ntriples")
    if show_sql:
        click.echo(pattern_sql(Pattern(parse(formula))))
        return
    graph = KnowledgeGraph.open(dataset).answered_by(options)
    for note in graph.notes:
        click.echo(f"note: {printable(note)}", err=True)
    names = graph.vocabulary
    if as_triples:
        with time_limit(timeout):
            edges = graph.support(formula, split)
        for line in ntriples(names, edges):
            click.echo(line, nl=False)
        return
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
