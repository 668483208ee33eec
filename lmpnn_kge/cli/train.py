"""`lmpnn-kge train`: from a checkpoint to a network that answers queries."""

from __future__ import annotations

import sys

import click

from lmpnn_kge.cli.options import (
    backbone_option,
    checkpoint_option,
    command_line,
    config_option,
    dataset_option,
    device_option,
    epochs_option,
    given_settings,
    out_option,
    queries_option,
    seed_option,
    setting_option,
    table_memory_option,
)
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import printable


@click.command()
@backbone_option
@checkpoint_option
@dataset_option
@queries_option
@config_option
@setting_option
@out_option("RUN", "Run folder to write; default: runs/GRAPH-BACKBONE.")
@epochs_option
@seed_option
@device_option
@table_memory_option
@click.option("--resume", is_flag=True, help="Continue the run in the run folder, if there is one.")
@click.option(
    "--track",
    multiple=True,
    metavar="NAME",
    help="Record the training with a tracker: tensorboard, wandb, mlflow or another one (see "
    "`trackers`); can be repeated.",
)
@click.option("--tensorboard", is_flag=True, help="Short for --track tensorboard.")
def train(
    backbone: str | None,
    checkpoint: str | None,
    dataset: str | None,
    queries: str | None,
    config: str | None,
    settings: tuple[str, ...],
    out: str | None,
    epochs: int | None,
    seed: int | None,
    device: str,
    table_memory: str | None,
    resume: bool,
    track: tuple[str, ...],
    tensorboard: bool,
) -> None:
    """Train LMPNN on a checkpoint, test it, and print MRR and Hits by query type.

    The dataset that the checkpoint names is searched for in ./data, in $LMPNN_KGE_DATA and beside
    the checkpoint. Queries are sampled beside the dataset once. Ctrl-C saves; --resume continues.
    """
    from lmpnn_kge.runs.train import train as train_run
    from lmpnn_kge.training.interrupt import Interrupted

    if checkpoint is None and not (resume and out is not None):
        raise click.UsageError("give --checkpoint FILE, or --resume with --out RUN")
    trackers = [*track, *(["tensorboard"] if tensorboard else [])]
    with terminal() as listener:
        try:
            run = train_run(
                checkpoint,
                backbone=backbone,
                dataset=dataset,
                queries=queries,
                config=config,
                settings=given_settings(settings, epochs=epochs, seed=seed),
                out=out,
                device=device,
                table_memory=table_memory,
                resume=resume,
                track=trackers,
                listener=listener,
            )
        except (Interrupted, KeyboardInterrupt) as error:
            if listener.folder is None:  # there is nothing to continue yet
                raise
            options = ["--resume", "--out", str(listener.folder)]
            options += [] if device == "auto" else ["--device", device]
            options += [] if table_memory is None else ["--table-memory", table_memory]
            options += [word for name in trackers for word in ("--track", name)]
            saved = " and saved" if isinstance(error, Interrupted) else ""
            click.echo(f"stopped{saved}; continue with: {command_line('train', *options)}")
            sys.exit(130)
    if run.results is not None:
        click.echo(f"test, MRR in percent:\n\n{run.results}\n")
    else:
        click.echo("note: no test query has a hard answer, so nothing was tested", err=True)
    click.echo(f"run       {printable(str(run.folder.path))}")
    click.echo(f"next: {command_line('ask', str(run.folder.path), 'FORMULA')}", err=True)
