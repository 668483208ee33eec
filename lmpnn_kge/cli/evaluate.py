"""`lmpnn-kge evaluate`: the paper's row for a run, or for a method that needs no training."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lmpnn_kge.cli.options import (
    device_option,
    format_option,
    given_settings,
    json_option,
    setting_option,
    table_memory_option,
)
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import RunError, one_line
from lmpnn_kge.methods.names import HYBRID, LMPNN, OF_CHECKPOINT, OF_RUN, SEARCH

if TYPE_CHECKING:
    from lmpnn_kge.methods.results import Results
    from lmpnn_kge.settings.kinds import UnionMode
    from lmpnn_kge.work.listener import Listener


@click.command()
@click.argument("run", type=click.Path(), required=False)
@click.option(
    "--method",
    type=click.Choice([LMPNN, *OF_CHECKPOINT]),
    default=LMPNN,
    show_default=True,
    help="lmpnn is the network of RUN. The others need a checkpoint only, but search, hybrid and "
    "cqd-beam also take that of RUN. search uses scores as truths of edges; hybrid has learnt on "
    "valid queries to do that better; cqd and cqd-beam apply fuzzy logic to plain scores; "
    "frequency ranks entities by how often they end the last relation of the query.",
)
@click.option(
    "--checkpoint",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Checkpoint that the method works on; or that of RUN, if it has moved.",
)
@click.option(
    "--backbone",
    metavar="NAME",
    help="Backbone of the method's checkpoint; default: detected from it.",
)
@click.option(
    "--dataset",
    type=click.Path(),
    metavar="DIR|FILE",
    help="Graph of the checkpoint; default: found by the name in it, or that of RUN.",
)
@click.option(
    "--split",
    default="test",
    show_default=True,
    metavar="SPLIT",
    help="Queries to rank: valid or test.",
)
@click.option(
    "--queries", type=click.Path(), metavar="DIR", help="Query store to use instead of the run's."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Evaluate at most N queries per type, evenly spread.",
)
@click.option(
    "--union",
    type=click.Choice(["dnf", "merge"]),
    help="How the network answers OR: dnf scores each part and keeps the best, merge treats OR as "
    "AND. Default: as in training.",
)
@click.option(
    "--facts",
    type=click.Choice(["known", "ignored", "both"]),
    help="Whether search and hybrid know the training edges, or only the scores of the checkpoint; "
    "both prints a table of both, by missing edges, beside the network of RUN if it is given.",
)
@setting_option
@click.option(
    "--ranks",
    type=click.Path(),
    metavar="FILE",
    help="Write the rank of every hard answer to FILE, which ends in .parquet or .csv.",
)
@device_option
@table_memory_option
@format_option
@json_option
def evaluate(
    run: str | None,
    method: str,
    checkpoint: str | None,
    backbone: str | None,
    dataset: str | None,
    split: str,
    queries: str | None,
    limit: int | None,
    union: UnionMode | None,
    facts: str | None,
    settings: tuple[str, ...],
    ranks: str | None,
    device: str,
    table_memory: str | None,
    format: str | None,
    as_json: bool,
) -> None:
    """Rank the hard answers of a split: MRR and Hits by query type.

    `evaluate RUN` evaluates the trained network of a run. `evaluate --method NAME --checkpoint
    FILE` evaluates a method on a checkpoint. What search and hybrid need is fitted on valid queries
    when they are first used, and kept in RUN or beside the checkpoint. `config show --for search`
    and `--for cqd` print the settings of the methods.
    """
    if run is None and method == LMPNN:
        raise click.UsageError("give a RUN, or a --method that needs none")
    if run is not None and method not in OF_RUN:
        raise click.UsageError(f"--method {method} takes a --checkpoint, not a RUN")
    if run is None and checkpoint is None:
        raise click.UsageError(f"--method {method} needs --checkpoint FILE")
    foreign = {} if run is None else {"--backbone": backbone, "--set": settings or None}
    for option, value in foreign.items():
        if value is not None:
            raise click.UsageError(f"{option} does not apply to a RUN")
    if union is not None and (method != LMPNN or facts is not None):
        raise click.UsageError(f"--union does not apply to --method {method} or with --facts")
    beside_network = method == LMPNN and facts == "both"  # and LMPNN has a RUN
    if facts is not None and method not in (SEARCH, HYBRID) and not beside_network:
        raise click.UsageError(f"--facts {facts} does not apply to --method {method}")
    if facts in ("known", "ignored") and run is not None:
        raise click.UsageError(f"--facts {facts} takes a --checkpoint, not a RUN")
    if as_json and format is not None:
        raise click.UsageError(f"--json and --format {format} contradict each other")
    if ranks is not None:
        from lmpnn_kge.methods.ranks import check_ranks_file

        check_ranks_file(ranks)
    started = time.monotonic()
    with terminal() as listener:
        if facts == "both":
            rows = _evaluate_facts(
                run,
                method,
                listener,
                checkpoint=checkpoint,
                backbone=backbone,
                dataset=dataset,
                queries=queries,
                split=split,
                limit=limit,
                settings=given_settings(settings),
                device=device,
                table_memory=table_memory,
            )
            _print_rows(rows, as_json)
            return
        if run is not None:
            results = _evaluate_run(
                run,
                method,
                checkpoint,
                dataset,
                split,
                queries,
                limit,
                union,
                ranks,
                device,
                table_memory,
                listener,
            )
        else:
            from lmpnn_kge.runs.baselines import evaluate_method

            results = evaluate_method(
                method,
                str(checkpoint),
                backbone=backbone,
                dataset=dataset,
                queries=queries,
                split=split,
                limit=limit,
                settings=given_settings(settings, facts=facts),
                ranks=ranks,
                device=device,
                table_memory=table_memory,
                listener=listener,
            )
    _print(results, time.monotonic() - started, "json" if as_json else format or "text")


def _evaluate_run(
    folder: str,
    method: str,
    checkpoint: str | None,
    dataset: str | None,
    split: str,
    queries: str | None,
    limit: int | None,
    union: UnionMode | None,
    ranks: str | None,
    device: str,
    table_memory: str | None,
    listener: Listener,
) -> Results:
    from lmpnn_kge.runs.run import Run

    run = Run.open(
        folder, checkpoint=checkpoint, dataset=dataset, device=device, table_memory=table_memory
    )
    store, notes = run.queries(split, queries)
    for note in (*run.notes, *notes):
        listener.note(note)
    results = run.evaluate(
        split,
        queries=store,
        method=method,
        union=union,
        limit=limit,
        ranks=ranks,
        listener=listener,
    )
    if method != LMPNN and split == "test" and queries is None and limit is None:
        try:
            run.keep_results(method, results)
        except RunError as error:
            listener.note(f"{one_line(error)}, without these results")
    return results


def _evaluate_facts(
    folder: str | None, method: str, listener: Listener, **options: Any
) -> dict[str, Results]:
    from lmpnn_kge.runs.facts import evaluate_facts
    from lmpnn_kge.runs.run import Run

    run = None
    if folder is not None:
        given = {
            name: options[name] for name in ("checkpoint", "dataset", "device", "table_memory")
        }
        run = Run.open(folder, **given)
        for note in run.notes:
            listener.note(note)
    methods = (SEARCH, HYBRID) if method == LMPNN else (method,)
    return evaluate_facts(methods=methods, run=run, listener=listener, **options)


def _print_rows(rows: Mapping[str, Results], as_json: bool) -> None:
    from lmpnn_kge.methods.difficulty import by_difficulty
    from lmpnn_kge.methods.results import compare

    if as_json:
        contents = {label: results.to_json() for label, results in rows.items()}
        click.echo(json.dumps(contents, indent=2))
        return
    split = next(iter(rows.values())).split
    compared = compare({label: [results] for label, results in rows.items()})
    parts = (f"{split}, MRR in percent:", compared, by_difficulty(rows))
    click.echo("\n\n".join(part for part in parts if part))


def _print(results: Results, seconds: float, format: str) -> None:
    if format == "json":
        click.echo(json.dumps(results.to_json(), indent=2))
        return
    if format != "text":
        from lmpnn_kge.reports.table_formats import format_table

        click.echo(format_table(results.to_table(), format), nl=False)
        return
    speed = results.queries / seconds
    click.echo(f"{results.split}, MRR in percent:\n\n{results}\n")
    click.echo(
        f"{results.queries:,} queries in {seconds:.1f} s, {speed:,.0f} per second",
        err=True,
    )
