"""`lmpnn-kge answer`: the exact answers of a formula over a graph."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import click

from lmpnn_kge.cli.options import engine_options, json_option, timeout_option
from lmpnn_kge.errors import printable
from lmpnn_kge.work.deadline import time_limit

#: Tuples that are printed unless --limit gives another number.
TUPLES = 10_000


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
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: ids and labels.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Print at most N answers. Default: all, or the first 10,000 of a formula with ?1, ?2, ….",
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
    as_csv: bool,
    limit: int | None,
    timeout: float,
    as_json: bool,
    **engine: Any,
) -> None:
    """Answer a FORMULA such as 'capital(?x, ?) & continent(?x, Asia)' from the edges of a graph.

    ? marks the answer, and ?x stands for some entity. A formula with ?1, ?2, … asks for several
    entities at once, and its answers are tuples. The formula may also be a SPARQL query. The
    answers are exact: nothing is predicted.
    """
    from lmpnn_kge.graph.engine import EngineOptions
    from lmpnn_kge.graph.formats.ntriples import ntriples
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.query.formula import free_variables
    from lmpnn_kge.query.parser import parse
    from lmpnn_kge.query.patterns import Pattern
    from lmpnn_kge.query.sql import pattern_sql

    options = EngineOptions(**engine)
    if show_sql + as_json + as_triples + as_csv > 1:
        raise click.UsageError("give one of --sql, --json, --csv and --ntriples")
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
    several = len(free_variables(parse(formula))) > 1
    with time_limit(timeout):
        rows, complete = graph.answer_tuples(formula, split, limit or (TUPLES if several else None))
    answers = [
        [{"id": names.entity_ids[row], "label": names.label(row)} for row in entities]
        for entities in rows.tolist()
    ]
    if not complete:
        click.echo(
            f"note: only the first {len(rows):,} answers; --limit N gives another number", err=True
        )
    if as_json:
        listed = answers if several else [item for (item,) in answers]
        content = {"formula": formula, "split": split, "answers": listed}
        click.echo(json.dumps(content | ({} if complete else {"complete": False}), indent=2))
        return
    if as_csv:
        click.echo(_csv(answers, rows.shape[1]), nl=False)
        return
    for entities in answers:
        click.echo(", ".join(map(_named, entities)))
    click.echo(f"{len(answers)} {'answer' if len(answers) == 1 else 'answers'}", err=True)


def _named(entity: dict[str, str]) -> str:
    id_ = "" if entity["label"] == entity["id"] else f"  ({entity['id']})"
    return printable(f"{entity['label']}{id_}")


def _csv(answers: list[list[dict[str, str]]], arity: int) -> str:
    """The columns id and label, numbered if answers are tuples."""
    numbers = range(1, arity + 1) if arity > 1 else [""]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(f"{name}{number}" for number in numbers for name in ("id", "label"))
    writer.writerows([value for entity in row for value in entity.values()] for row in answers)
    return table.getvalue()
