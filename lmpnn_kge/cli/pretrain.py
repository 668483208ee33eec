"""`lmpnn-kge pretrain`: from triples to a checkpoint, with any backbone."""

from __future__ import annotations

import sys

import click

from lmpnn_kge.cli.options import (
    device_option,
    epochs_option,
    given_settings,
    seed_option,
    setting_option,
    to_type,
)
from lmpnn_kge.cli.progress import TrainingBar, bar
from lmpnn_kge.errors import printable


@click.command()
@click.option("--backbone", required=True, metavar="NAME", help="See `lmpnn-kge backbones`.")
@click.option("--dataset", required=True, type=click.Path(), metavar="DIR", help="The graph.")
@click.option(
    "-o", "--out", required=True, type=click.Path(), metavar="FILE", help="The checkpoint to write."
)
@click.option("--config", metavar="NAME|FILE", help="Settings; see `config list --for pretrain`.")
@setting_option
@epochs_option
@seed_option
@device_option
@click.option("--resume", is_flag=True, help="Go on with what was begun for the same file.")
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
    """Train an embedding of a graph and write it as a package that LibKGE opens as its own.

    A FILE called .safetensors holds any backbone, whether LibKGE has its model or not.
    Settings are those for the backbone's type of score. FILE.training holds the state while it
    trains. Ctrl-C saves; --resume goes on.
    """
    from lmpnn_kge.training import embedding as pretraining
    from lmpnn_kge.training.loop import Interrupted

    with bar() as progress:
        try:
            ranking = pretraining.pretrain(
                backbone,
                dataset,
                out,
                config=config,
                settings=given_settings(settings, epochs=epochs, seed=seed),
                device=device,
                resume=resume,
                watch=TrainingBar(progress),
            )
        except Interrupted:
            options = ["--backbone", backbone, "--dataset", dataset, "-o", out, "--resume"]
            options += [] if device == "auto" else ["--device", device]
            click.echo(f"stopped and saved; go on with: {to_type('pretrain', *options)}")
            sys.exit(130)
    if ranking is not None:
        hits = "".join(f"  Hits@{k} {getattr(ranking, f'hits_at_{k}'):.4f}" for k in (1, 3, 10))
        click.echo(f"test, filtered: MRR {ranking.mrr:.4f}{hits}")
    click.echo(f"checkpoint {printable(out)}")
    click.echo(f"next: {to_type('train', '--checkpoint', out, '--dataset', dataset)}", err=True)
