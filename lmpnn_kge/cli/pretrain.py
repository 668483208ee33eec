"""`lmpnn-kge pretrain`: from triples to a checkpoint, with any backbone."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lmpnn_kge.cli.options import (
    command_line,
    device_option,
    epochs_option,
    given_settings,
    out_option,
    seed_option,
    setting_option,
)
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import printable


@click.command()
@click.option(
    "--backbone", required=True, metavar="NAME", help="Backbone to train (see `backbones`)."
)
@click.option(
    "--dataset",
    required=True,
    type=click.Path(),
    metavar="DIR|FILE",
    help="Graph: a dataset folder, or a file of triples, which is split as by `split`.",
)
@out_option("FILE", "Checkpoint to write: .pt for LibKGE, or .safetensors.", required=True)
@click.option(
    "--config",
    metavar="NAME|FILE",
    help="Settings to start from (see `config list --for pretrain`).",
)
@setting_option
@epochs_option
@seed_option
@device_option
@click.option("--resume", is_flag=True, help="Continue the training of FILE, if it was stopped.")
def pretrain(
    backbone: str,
    dataset: str,
    out: str,
    config: str | None,
    settings: tuple[str, ...],
    epochs: int | None,
    seed: int | None,
    device: str,
    resume: bool,
) -> None:
    """Train an embedding of a graph and write it as a checkpoint.

    A .pt file is a package that LibKGE opens as its own. A .safetensors file holds any backbone,
    even if LibKGE has no such model. The default settings depend on the backbone's type of score.
    FILE.training holds the state during training. Ctrl-C saves; --resume continues.
    """
    from lmpnn_kge.runs.pretrain import pretrain as pretrain_embedding
    from lmpnn_kge.training.interrupt import Interrupted

    with terminal() as listener:
        try:
            ranking = pretrain_embedding(
                backbone,
                dataset,
                out,
                config=config,
                settings=given_settings(settings, epochs=epochs, seed=seed),
                device=device,
                resume=resume,
                listener=listener,
            )
        except (Interrupted, KeyboardInterrupt) as error:
            if listener.folder is None or not Path(listener.folder).exists():
                raise
            options = ["--backbone", backbone, "--dataset", dataset, "-o", out, "--resume"]
            options += [] if device == "auto" else ["--device", device]
            saved = " and saved" if isinstance(error, Interrupted) else ""
            click.echo(f"stopped{saved}; continue with: {command_line('pretrain', *options)}")
            sys.exit(130)
    if ranking is not None:
        hits = "".join(f"  Hits@{k} {getattr(ranking, f'hits_at_{k}'):.4f}" for k in (1, 3, 10))
        click.echo(f"test, filtered: MRR {ranking.mrr:.4f}{hits}")
    click.echo(f"checkpoint {printable(out)}")
    click.echo(
        f"next: {command_line('train', '--checkpoint', out, '--dataset', dataset)}", err=True
    )
