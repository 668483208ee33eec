"""`lmpnn-kge tune`: the settings that are best on valid."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lmpnn_kge.cli.options import (
    backbone_option,
    config_option,
    dataset_option,
    device_option,
    epochs_option,
    given_settings,
    out_option,
    queries_option,
    seed_option,
    setting_option,
)
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import printable

if TYPE_CHECKING:
    from lmpnn_kge.tuning.tune import Tuned


@click.command()
@click.option(
    "--checkpoint",
    required=True,
    type=click.Path(readable=False),
    metavar="FILE",
    help="Checkpoint of the embedding: a LibKGE file, or another format (see `loaders`).",
)
@click.option(
    "--search",
    multiple=True,
    metavar="NAME=SPACE",
    help="Setting to search for: NAME=LOW..HIGH, NAME=LOW..HIGH,log or NAME=A|B|C; can be "
    "repeated.",
)
@click.option(
    "--space", type=click.Path(), metavar="FILE", help="YAML file with lines `NAME: SPACE`."
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of choices to train, besides the settings to begin with.",
)
@backbone_option
@dataset_option
@queries_option
@config_option
@setting_option
@epochs_option
@seed_option
@out_option("DIR", "Folder of the tuning; default: tuning/GRAPH-BACKBONE.")
@device_option
def tune(
    checkpoint: str,
    search: tuple[str, ...],
    space: str | None,
    trials: int,
    backbone: str | None,
    dataset: str | None,
    queries: str | None,
    config: str | None,
    settings: tuple[str, ...],
    epochs: int | None,
    seed: int | None,
    out: str | None,
    device: str,
) -> None:
    """Search for the settings of `train` that are best on valid, with Optuna.

    The settings to begin with, from --config and --set, are trained first. Trials that fall behind
    are stopped early. At the end the best network is tested, once, and its settings are written as
    a configuration. Ctrl-C saves; the same command continues, also after a kill. Needs the extra
    tune.
    """
    from lmpnn_kge.training.interrupt import Interrupted
    from lmpnn_kge.tuning.tune import tune as tune_settings

    with terminal() as listener:
        try:
            tuned = tune_settings(
                checkpoint,
                search,
                space=space,
                trials=trials,
                backbone=backbone,
                dataset=dataset,
                queries=queries,
                config=config,
                settings=given_settings(settings, epochs=epochs, seed=seed),
                out=out,
                device=device,
                listener=listener,
            )
        except (Interrupted, KeyboardInterrupt):
            click.echo("stopped; the same command continues")
            sys.exit(130)
    _print(tuned)


def _print(tuned: Tuned) -> None:
    from lmpnn_kge.methods.text_table import Cell, Table, Text, percent
    from lmpnn_kge.tuning.space import shown

    names = list(tuned.default.settings)
    rows = {"default": tuned.default}
    rows |= {str(number): trial for number, trial in enumerate(tuned.trials, start=1)}
    cells: list[list[Cell]] = [
        [
            label + (", stopped early" if trial.pruned else ""),
            Text(percent([trial.valid]), strong=trial == tuned.best),
            *(shown(trial.settings[name]) for name in names),
        ]
        for label, trial in rows.items()
    ]
    click.echo("Mean MRR on valid, in percent:\n")
    click.echo(Table(["trial", "valid", *names], cells).to_text())
    better = percent([tuned.best.valid]), percent([tuned.default.valid])
    click.echo("\nbest on valid: {}; the settings to begin with: {}\n".format(*better))
    if tuned.results is not None:
        click.echo(f"test, MRR in percent:\n\n{tuned.results}\n")
    for label, path in (("config", tuned.config), ("plot", tuned.plot), ("run", tuned.run)):
        click.echo(f"{label:<9} {printable(str(path))}")
