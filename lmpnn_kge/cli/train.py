"""`lmpnn-kge train`: from a checkpoint to a network that answers queries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from lmpnn_kge.cli.options import (
    config_option,
    dataset_option,
    device_option,
    epochs_option,
    given_settings,
    queries_option,
    reader_option,
    seed_option,
    setting_option,
    to_type,
)
from lmpnn_kge.cli.progress import TrainingBar, bar, sampling_aside
from lmpnn_kge.errors import LmpnnError, printable


@click.command()
@reader_option
@click.option(
    "--checkpoint", type=click.Path(readable=False), metavar="FILE", help="LibKGE's or another."
)
@dataset_option
@queries_option
@config_option
@setting_option
@click.option("--out", type=click.Path(), metavar="RUN", help="The run folder; else in runs/.")
@epochs_option
@seed_option
@device_option
@click.option("--resume", is_flag=True, help="Go on with the run in the folder, if there is one.")
@click.option("--tensorboard", is_flag=True, help="Write curves to RUN/tensorboard.")
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
    resume: bool,
    tensorboard: bool,
) -> None:
    """Train LMPNN on a checkpoint, evaluate it on test, and print the paper's row.

    The dataset that the checkpoint names is looked for in ./data, in $LMPNN_KGE_DATA and beside the
    checkpoint; queries are sampled next to it once. Ctrl-C saves; --resume goes on.
    """
    from lmpnn_kge.methods.results import as_text
    from lmpnn_kge.runs import run as runs
    from lmpnn_kge.training.loop import Interrupted

    if checkpoint is None and not (resume and out is not None):
        raise click.UsageError("give --checkpoint FILE, or --resume with --out RUN")
    if tensorboard:
        _writer()  # a mistake is found before the run is begun
    with bar() as progress:
        watch = _Watch(progress, tensorboard)
        try:
            run = runs.train(
                checkpoint,
                backbone=backbone,
                dataset=dataset,
                queries=queries,
                config=config,
                settings=given_settings(settings, epochs=epochs, seed=seed),
                out=out,
                device=device,
                resume=resume,
                watch=watch,
                sample=sampling_aside(progress),
            )
        except (Interrupted, KeyboardInterrupt) as error:
            if watch.folder is None:  # there is nothing yet to go on with
                raise
            options = ["--resume", "--out", str(watch.folder)]
            options += [] if device == "auto" else ["--device", device]
            options += ["--tensorboard"] if tensorboard else []
            saved = " and saved" if isinstance(error, Interrupted) else ""
            click.echo(f"stopped{saved}; go on with: {to_type('train', *options)}")
            sys.exit(130)
    if run.folder.has("test.json"):
        click.echo(f"test, MRR in per cent:\n\n{as_text(run.folder.read_json('test.json'))}\n")
    else:
        click.echo("note: no test query has a hard answer, so nothing was tested", err=True)
    click.echo(f"run       {printable(str(run.folder.path))}")
    click.echo(f"next: {to_type('ask', str(run.folder.path), 'FORMULA')}", err=True)


class _Watch(TrainingBar):
    """A training bar that knows the run's folder, and keeps TensorBoard's file there."""

    def __init__(self, progress: Any, tensorboard: bool):
        super().__init__(progress)
        self.tensorboard = tensorboard
        self.folder: Path | None = None

    def start(self, folder: Any, facts: Any) -> None:
        self.folder = folder.path
        if self.tensorboard:
            self.board = _writer()(str(folder.path / "tensorboard"))
        super().start(folder, facts)


def _writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise LmpnnError("--tensorboard needs `pip install lmpnn-kge[tensorboard]`") from error
    return SummaryWriter
