"""`lmpnn-kge evaluate`: the paper's row for a run, or for a method that needs no training."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from lmpnn_kge.cli.options import device_option, given_settings, json_option, setting_option
from lmpnn_kge.cli.progress import bar, sampling_aside
from lmpnn_kge.errors import printable


@click.command()
@click.argument("run", type=click.Path(), required=False)
@click.option(
    "--method",
    type=click.Choice(["lmpnn", "cqd", "cqd-beam", "frequency"]),
    default="lmpnn",
    show_default=True,
    help="The network of RUN, or what needs no RUN: fuzzy logic on the scores of a checkpoint by "
    "optimisation or by beam search, or entities by how often they are a tail.",
)
@click.option(
    "--checkpoint",
    type=click.Path(readable=False),
    metavar="FILE",
    help="The checkpoint of a method; that of RUN, if it has moved.",
)
@click.option("--backbone", metavar="NAME", help="The backbone of a method's checkpoint.")
@click.option("--dataset", type=click.Path(), metavar="DIR", help="Its dataset, if not found.")
@click.option("--split", default="test", show_default=True, metavar="SPLIT", help="valid or test.")
@click.option("--queries", type=click.Path(), metavar="DIR", help="Other queries than its own.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="So many of each type.")
@click.option(
    "--union",
    type=click.Choice(["dnf", "merge"]),
    help="Disjunctions: parts apart and the best taken, or as a conjunction; else as trained.",
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
    union: Any,
    settings: tuple[str, ...],
    device: str,
    as_json: bool,
) -> None:
    """Rank the hard answers of a split: MRR and Hits by query type.

    With the network of RUN, or with another --method on a --checkpoint; the settings of CQD are in
    `lmpnn-kge config show --for cqd`.
    """
    trained = method == "lmpnn"
    if (run is None) == trained:
        raise click.UsageError(
            "give a RUN" if trained else f"--method {method} takes a --checkpoint, not a RUN"
        )
    if not trained and checkpoint is None:
        raise click.UsageError(f"--method {method} needs --checkpoint FILE")
    foreign = {"--backbone": backbone, "--dataset": dataset, "--set": settings or None}
    for option, value in foreign.items() if trained else [("--union", union)]:
        if value is not None:
            raise click.UsageError(f"{option} means nothing to --method {method}")
    start = time.monotonic()
    with bar() as progress:
        task = progress.add_task("evaluating", total=None)

        def show(name: str, done: int) -> None:
            progress.update(task, description=f"evaluating {printable(name)}")

        def tell(note: str) -> None:  # before the wait for the figures that it is about
            click.echo(f"note: {printable(note)}", err=True)

        if trained:
            from lmpnn_kge.runs.run import Run

            assert run is not None
            opened = Run.open(run, checkpoint=checkpoint, device=device)
            asked = opened.queries(split, queries)
            for note in opened.notes:
                tell(note)
            options: dict[str, Any] = {"union": union, "limit": limit}
            results = opened.evaluate(split, queries=asked, progress=show, **options)
        else:
            from lmpnn_kge.runs.baselines import evaluate_method

            assert checkpoint is not None
            results = evaluate_method(
                method,
                checkpoint,
                backbone=backbone,
                dataset=dataset,
                queries=queries,
                split=split,
                limit=limit,
                settings=given_settings(settings),
                device=device,
                progress=show,
                tell=tell,
                sample=sampling_aside(progress),
            )
    _print(results, split, time.monotonic() - start, as_json)


def _print(results: Any, split: str, seconds: float, as_json: bool) -> None:
    from lmpnn_kge.methods.results import as_text

    if as_json:
        click.echo(json.dumps(results, indent=2))
        return
    count = sum(found["queries"] for found in results["types"].values())
    click.echo(f"{split}, MRR in per cent:\n\n{as_text(results)}\n")
    click.echo(f"{count:,} queries in {seconds:.1f} s, {count / seconds:,.0f} a second", err=True)
