"""`lmpnn-kge ask`: formulas in, ranked entities out, each known or predicted."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from lmpnn_kge.cli.options import (
    check_svg,
    device_option,
    moved_checkpoint_option,
    table_memory_option,
    timeout_option,
)
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import LmpnnError, QueryError, one_line, printable
from lmpnn_kge.files import check_file, write_file

if TYPE_CHECKING:
    from lmpnn_kge.runs.answer import AnswerList, NumberOfAnswers
    from lmpnn_kge.runs.asker import Candidates

#: The columns of machine-readable output.
COLUMNS = ("question", "id", "label", "score", "probability", "known", "confirmed", "mark")


@click.command()
@click.argument("run", type=click.Path())
@click.argument("formulas", metavar="[FORMULA]...", nargs=-1)
@click.option(
    "-f",
    "--file",
    type=click.File("r", encoding="utf-8-sig"),
    metavar="FILE",
    help="File with one formula per line, - for standard input. Blank lines and lines that begin "
    "with # are skipped. A file that ends in .rq holds one SPARQL query.",
)
@click.option(
    "-k",
    "most",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of answers to each formula. Default: the LIMIT of a SPARQL query, or 10.",
)
@click.option("--predicted", is_flag=True, help="Print only answers that are not known.")
@click.option(
    "--typed",
    "candidates",
    flag_value="typed",
    help="Omit entities that no training edge of the relation has at the place of ?. By default "
    "they come last.",
)
@click.option(
    "--any",
    "candidates",
    flag_value="any",
    help="Rank such entities by score, like all others.",
)
@click.option(
    "--method",
    metavar="NAME",
    help="Way to answer: search uses the scores of the checkpoint as truths of edges, hybrid has "
    "learnt on valid queries to do that better; lmpnn is the network of RUN; cqd-beam applies "
    "fuzzy logic to plain scores. Default: hybrid, or lmpnn without the graph.",
)
@click.option(
    "--approximate",
    is_flag=True,
    help="Look for the answers of the network (lmpnn) in an index of the entities instead of "
    "reading a large table. The index is built once, and the share of answers that it finds is "
    "printed. Needs the extra index.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Print the reason for each answer: an entity for every variable, and whether each edge is "
    "known or predicted.",
)
@click.option(
    "--witnesses",
    type=click.IntRange(min=1),
    metavar="N",
    help="Print up to N reasons for each answer, the best first.",
)
@click.option(
    "--count",
    is_flag=True,
    help="Also print how many answers there probably are, and how many of them are known. Records "
    "have these as count and known_count.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False),
    metavar="FILE.svg",
    help="Draw the reasons as query graphs that are filled in.",
)
@click.option(
    "--dataset", type=click.Path(), metavar="DIR|FILE", help="Graph of the run, if it has moved."
)
@moved_checkpoint_option
@device_option
@table_memory_option
@timeout_option("a formula")
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "jsonl", "csv"]),
    help="Print a table for each formula, or a record for each answer. Default: table.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
def ask(
    run: str,
    formulas: tuple[str, ...],
    file: TextIO | None,
    most: int | None,
    predicted: bool,
    candidates: Candidates | None,
    method: str | None,
    approximate: bool,
    explain: bool,
    witnesses: int | None,
    count: bool,
    out: str | None,
    dataset: str | None,
    checkpoint: str | None,
    device: str,
    table_memory: str | None,
    timeout: float,
    output: str | None,
    as_json: bool,
) -> None:
    """Answer a FORMULA such as 'borders(Germany, ?) & !currency(?, Euro)' with RUN.

    A formula with ?1, ?2, … asks for tuples. It may also be a SPARQL query.

    The figure before an answer is its probability, or its score if the method has none: of the
    answers that are given 30 %, about 30 % hold. What hybrid and search need is fitted on valid
    queries when they are first used, and kept in RUN.

    An answer is known if it follows from the training edges, and predicted otherwise. Held-out
    edges can confirm or contradict it. Entities that violate a negated condition in the training
    edges are omitted, and so is an entity of the formula that could answer only by an edge to
    itself.

    With several formulas, a wrong one does not stop the others: its error is printed, and the exit
    code is 1. A record has the question, id, label, score, probability (if the method estimates
    one), known (follows from training edges), confirmed (follows from all edges), mark and reasons
    (if they are asked for; in CSV as JSON).
    """
    if bool(formulas) == (file is not None):
        raise click.UsageError("give one or more formulas, or a file of them with -f FILE")
    if as_json and output not in (None, "json"):
        raise click.UsageError(f"--json and --format {output} contradict each other")
    from lmpnn_kge.query.draw_reasons import draw_reasons
    from lmpnn_kge.runs.run import Run

    places = {f"question {number}": text for number, text in enumerate(formulas, 1)}
    if file is not None:
        places = dict(_lines(file))
        if not places:
            raise LmpnnError(f"{file.name} has no formula")
    if out is not None:
        check_svg(out)
        check_file(out)
    opened = Run.open(
        run, checkpoint=checkpoint, dataset=dataset, device=device, table_memory=table_memory
    )
    with terminal() as listener:
        results = opened.ask_each(
            [*places.values()],
            most,
            predicted=predicted,
            method=method,
            candidates=candidates or "typed-first",
            approximate=approximate,
            explain=witnesses or int(explain or out is not None),
            timeout=timeout,
            listener=listener,
        )
        numbers = {
            text: opened.count(text, method=method, timeout=timeout, listener=listener)
            for text, result in zip(places.values(), results, strict=True)
            if count and not isinstance(result, QueryError)
        }
    alone = len(formulas) == 1 or (file is not None and _is_sparql_file(file))
    if alone and isinstance(results[0], QueryError):
        raise results[0]
    for note in opened.notes:
        _note(note)
    if opened.graph is None:
        _note(
            "without the graph (--dataset DIR), answers are not marked as known, and entities of "
            "any type are offered"
        )
    output = "json" if as_json else output or "table"
    for place, result in zip(places, results, strict=True):
        if isinstance(result, QueryError):
            _report(result, place)
            continue
        for note in result.notes:
            _note(note if alone else f"{place}: {note}")
        if output == "table":
            _print_table(result, alone, numbers.get(result.question))
    answered = [result for result in results if not isinstance(result, QueryError)]
    if out is not None:
        reasons = [reason for result in answered for answer in result for reason in answer.reasons]
        write_file(draw_reasons(reasons).encode(), Path(out))
    if output != "table":
        records = (_records(result, numbers.get(result.question)) for result in answered)
        _print_records([record for some in records for record in some], output)
    if any(isinstance(result, QueryError) for result in results):
        sys.exit(1)


def _lines(file: TextIO) -> Iterator[tuple[str, str]]:
    """The formulas of a file, each with its place."""
    try:
        text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise LmpnnError(f"{file.name} cannot be read: {one_line(error)}") from error
    if _is_sparql_file(file):
        yield file.name, text
        return
    lines = [line.strip() for line in text.split("\n")]
    for number, line in enumerate(lines, 1):
        if line and not line.startswith("#"):
            yield f"line {number}", line


def _is_sparql_file(file: TextIO) -> bool:
    """Whether a file holds one SPARQL query, which may have several lines."""
    return str(getattr(file, "name", "")).lower().endswith(".rq")


def _note(text: str) -> None:
    click.echo(f"note: {printable(text)}", err=True)


def _report(error: QueryError, place: str) -> None:
    click.echo(f"Error: {place}: {one_line(error, 2000)}", err=True)
    if error.excerpt:
        click.echo(error.excerpt, err=True)


def _print_table(answers: AnswerList, alone: bool, number: NumberOfAnswers | None) -> None:
    """A line for each answer, then their number; if there are several questions, under each."""
    indent = "" if alone else "  "
    if not alone:
        click.echo(printable(answers.question))
    width = max((len(printable(answer.label)) for answer in answers), default=0)
    for answer, figure in zip(answers, answers.figures, strict=True):
        id_ = "" if answer.id == answer.label else f"  ({printable(answer.id)})"
        label = f"{printable(answer.label):<{width}}"
        click.echo(f"{indent}{figure:>6}  {label}  {answer.mark}{id_}".rstrip())
        for reason in answer.reasons:
            for line in reason.lines():
                click.echo(f"{indent}{'':8}{printable(line)}")
    if number is not None:
        click.echo(f"{indent}{number}")
    if not alone:
        click.echo()


def _records(answers: AnswerList, number: NumberOfAnswers | None) -> Iterator[dict[str, Any]]:
    from lmpnn_kge.runs.answer import TupleAnswer

    for answer in answers:
        record = {"question": answers.question, **vars(answer), "mark": answer.mark}
        if number is not None:
            record |= {"count": number.expected, "known_count": number.known}
        record["reasons"] = [reason.to_json() for reason in answer.reasons]
        if isinstance(answer, TupleAnswer):
            record["entities"] = [vars(entity) for entity in answer.entities]
        if not math.isfinite(answer.score):  # a truth of 0 has the score -inf, which JSON lacks
            record["score"] = None
        yield record


def _print_records(records: list[dict[str, Any]], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(records, indent=2))
    elif output == "jsonl":
        for record in records:
            click.echo(json.dumps(record))
    else:
        table = io.StringIO()
        columns = [*COLUMNS]
        columns += ["reasons"] * any(r["reasons"] for r in records)
        columns += ["count", "known_count"] * any("count" in r for r in records)
        writer = csv.DictWriter(table, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**r, "reasons": json.dumps(r["reasons"])} for r in records)
        click.echo(table.getvalue(), nl=False)
