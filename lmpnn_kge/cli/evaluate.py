"""`lmpnn-kge evaluate`: the paper's row for a run, or for a method that needs no training."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

from lmpnn_kge.cli.options import device_option, given_settings, json_option, setting_option
from lmpnn_kge.cli.progress import terminal

if TYPE_CHECKING:
    from lmpnn_kge.listener import Listener
    from lmpnn_kge.methods.results import Results
    from lmpnn_kge.settings.kinds import UnionMode

LMPNN = "lmpnn"


@click.command()
@click.argument("run", type=click.Path(), required=False)
@click.option(
    "--method",
    type=click.Choice([LMPNN, "cqd", "cqd-beam", "frequency"]),
    default=LMPNN,
    show_default=True,
    help="lmpnn is the network of RUN. The others need no RUN: cqd and cqd-beam apply fuzzy logic "
    "to the scores of the checkpoint; frequency ranks entities by how often they end the last "
    "relation of the query.",
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
    metavar="DIR",
    help="Graph of the method's checkpoint; default: found by the name in it.",
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
@setting_option
@device_option
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
    settings: tuple[str, ...],
    device: str,
    as_json: bool,
) -> None:
    """Rank the hard answers of a split: MRR and Hits by query type.

    `evaluate RUN` evaluates the trained network of a run. `evaluate --method NAME --checkpoint
    FILE` evaluates a method that needs no training on a checkpoint; `config show --for cqd` prints
    the settings of cqd and cqd-beam.
    """
    trained = method == LMPNN
    if trained and run is None:
        raise click.UsageError("give a RUN, or a --method that needs none")
    if not trained and run is not None:
        raise click.UsageError(f"--method {method} takes a --checkpoint, not a RUN")
    if not trained and checkpoint is None:
        raise click.UsageError(f"--method {method} needs --checkpoint FILE")
    foreign = {"--backbone": backbone, "--dataset": dataset, "--set": settings or None}
    for option, value in foreign.items() if trained else [("--union", union)]:
        if value is not None:
            raise click.UsageError(f"{option} does not apply to --method {method}")
    started = time.monotonic()
    with terminal() as listener:
        if run is not None:
            results = _evaluate_run(run, checkpoint, split, queries, limit, union, device, listener)
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
                settings=given_settings(settings),
                device=device,
                listener=listener,
            )
    _print(results, time.monotonic() - started, as_json)


def _evaluate_run(
    folder: str,
    checkpoint: str | None,
    split: str,
    queries: str | None,
    limit: int | None,
    union: UnionMode | None,
    device: str,
    listener: Listener,
) -> Results:
    from lmpnn_kge.runs.run import Run

    run = Run.open(folder, checkpoint=checkpoint, device=device)
    store, notes = run.queries(split, queries)
    for note in (*run.notes, *notes):
        listener.note(note)
    return run.evaluate(split, queries=store, union=union, limit=limit, listener=listener)


def _print(results: Results, seconds: float, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(results.to_json(), indent=2))
        return
    speed = results.queries / seconds
    click.echo(f"{results.split}, MRR in percent:\n\n{results}\n")
    click.echo(
        f"{results.queries:,} queries in {seconds:.1f} s, {speed:,.0f} per second",
        err=True,
    )
