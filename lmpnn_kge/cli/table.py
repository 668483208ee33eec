"""`lmpnn-kge table`: the paper's tables, and a user's own, as one command."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from lmpnn_kge.cli.options import (
    beside_option,
    config_option,
    dataset_option,
    device_option,
    epochs_option,
    given_settings,
    queries_option,
    read_beside,
    reader_option,
    seed_option,
    setting_option,
)
from lmpnn_kge.cli.progress import TrainingBar, bar, sampling_aside
from lmpnn_kge.errors import printable


@click.command()
@click.argument("table", metavar="NAME|FILE")
@click.option(
    "--checkpoint",
    "checkpoints",
    required=True,
    multiple=True,
    type=click.Path(readable=False),
    metavar="FILE",
    help="A LibKGE checkpoint; given several times, all rows for each.",
)
@reader_option
@dataset_option
@queries_option
@config_option
@setting_option
@epochs_option
@seed_option
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    metavar="N",
    help="Train each row with the seeds 0 to N-1, and show mean ± standard deviation.",
)
@click.option("--out", type=click.Path(), metavar="DIR", help="Its folder; else in tables/.")
@beside_option
@device_option
def table(
    table: str,
    checkpoints: tuple[str, ...],
    backbone: str | None,
    dataset: str | None,
    queries: str | None,
    config: str | None,
    settings: tuple[str, ...],
    epochs: int | None,
    seed: int | None,
    seeds: int | None,
    out: str | None,
    beside: tuple[str, ...],
    device: str,
) -> None:
    """Train and test LMPNN in many settings, and print a row for each.

    `ablation` has the paper's ablation and more, `backbones` a row for each checkpoint, and a FILE
    of your own has lines such as `T = 0.2: {temperature: 0.2}`, each of which changes settings of
    the base: those of --config and --set. What is finished in DIR is used again; Ctrl-C saves, and
    the same command goes on.
    """
    from lmpnn_kge.tables.make import make_table
    from lmpnn_kge.training.loop import Interrupted

    with bar() as progress:
        try:
            made = make_table(
                table,
                checkpoints,
                backbone=backbone,
                dataset=dataset,
                queries=queries,
                config=config,
                settings=given_settings(settings, epochs=epochs, seed=seed),
                seeds=seeds,
                out=out,
                device=device,
                watch=_Watch(progress),
                tell=lambda text: click.echo(f"training  {printable(text)}", err=True),
                sample=sampling_aside(progress),
                beside=read_beside(beside),
            )
        except (Interrupted, KeyboardInterrupt) as error:
            saved = " and saved" if isinstance(error, Interrupted) else ""
            click.echo(f"stopped{saved}; the same command goes on")
            sys.exit(130)
    click.echo(f"MRR on test queries, in per cent:\n\n{made}\n")
    click.echo(f"report    {printable(str(made.report))}")


class _Watch(TrainingBar):
    """A training bar that says once what is the same for many runs."""

    def __init__(self, progress: Any):
        super().__init__(progress)
        self.told: Mapping[str, str] = {}

    def start(self, folder: Any, facts: Mapping[str, str]) -> None:
        new = {name: text for name, text in facts.items() if self.told.get(name) != text}
        self.told = facts
        super().start(folder, new)
