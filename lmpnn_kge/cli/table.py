"""`lmpnn-kge table`: the paper's tables, and a user's own, as one command."""

from __future__ import annotations

import sys

import click

from lmpnn_kge.cli.options import (
    backbone_option,
    beside_option,
    config_option,
    dataset_option,
    device_option,
    epochs_option,
    format_option,
    given_settings,
    out_option,
    queries_option,
    read_beside,
    seed_option,
    setting_option,
)
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import printable
from lmpnn_kge.methods.names import OF_CHECKPOINT


@click.command()
@click.argument("table", metavar="NAME|FILE")
@click.option(
    "--checkpoint",
    "checkpoints",
    required=True,
    multiple=True,
    type=click.Path(readable=False),
    metavar="FILE",
    help="Checkpoint of an embedding; with several, every row is trained on each.",
)
@backbone_option
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
@out_option(
    "DIR", "Folder of the table; default: tables/NAME-GRAPH, with the backbone if there is one."
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(OF_CHECKPOINT),
    help="Also evaluate this method on every checkpoint, without training a network; can be "
    "repeated. `evaluate --help` explains the methods.",
)
@click.option(
    "--test-queries",
    multiple=True,
    type=click.Path(),
    metavar="DIR",
    help="Also test every row on the test queries of this store, in a table of its own, without "
    "training on it; can be repeated.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Test on at most N queries per type, evenly spread.",
)
@beside_option
@format_option
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
    methods: tuple[str, ...],
    test_queries: tuple[str, ...],
    limit: int | None,
    beside: tuple[str, ...],
    format: str | None,
    device: str,
) -> None:
    """Train and test LMPNN with many settings, and print a row for each.

    `ablation` is the paper's ablation and more; `backbones` has a row for each checkpoint. A FILE
    of your own has lines such as `T = 0.2: {temperature: 0.2}`. Each line changes some settings of
    the base, which --config and --set choose. Finished rows in DIR are reused. Ctrl-C saves; the
    same command continues.
    """
    from lmpnn_kge.reports.table_formats import format_tables
    from lmpnn_kge.tables.make import make_table
    from lmpnn_kge.training.interrupt import Interrupted

    with terminal() as listener:
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
                methods=methods,
                test_queries=test_queries,
                limit=limit,
                beside=read_beside(beside),
                listener=listener,
            )
        except (Interrupted, KeyboardInterrupt) as error:
            saved = " and saved" if isinstance(error, Interrupted) else ""
            click.echo(f"stopped{saved}; the same command continues")
            sys.exit(130)
    if format in (None, "text"):
        click.echo(f"MRR on test queries, in percent:\n\n{made}\n")
        click.echo(f"report    {printable(str(made.report))}")
    else:
        click.echo(format_tables(made.to_tables(), format), nl=False)
        click.echo(f"report    {printable(str(made.report))}", err=True)
