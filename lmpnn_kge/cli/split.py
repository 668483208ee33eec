"""`lmpnn-kge split`: a graph to train on from one file of triples."""

from __future__ import annotations

from pathlib import Path

import click

from lmpnn_kge.cli.options import command_line, out_option
from lmpnn_kge.errors import printable

share = click.FloatRange(min=0, max=1, min_open=True, max_open=True)


@click.command()
@click.argument("file", type=click.Path())
@out_option("DIR", "Dataset folder to write.", required=True)
@click.option(
    "--valid",
    default=0.1,
    show_default=True,
    type=share,
    metavar="SHARE",
    help="Share of each relation's triples held out for validation.",
)
@click.option(
    "--test",
    default=0.1,
    show_default=True,
    type=share,
    metavar="SHARE",
    help="Share of each relation's triples held out for the test.",
)
@click.option(
    "--header/--no-header", default=None, help="Whether the first line names the columns."
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Seed that decides which triples are held out.",
)
def split(file: str, out: str, valid: float, test: float, header: bool | None, seed: int) -> None:
    """Split a FILE of triples into train, valid and test, as a LibKGE dataset folder.

    Every line is a head, a relation and a tail, separated by tabs, or by commas if FILE ends in
    .csv. Every entity keeps a triple to train on.
    """
    from lmpnn_kge.backbones.discovery import first_backbone
    from lmpnn_kge.graph.split import split_file
    from lmpnn_kge.graph.triples import SPLITS

    graph = split_file(file, out, valid=valid, test=test, header=header, seed=seed)
    sizes = ", ".join(f"{len(graph.triples(name)):,} {name}" for name in SPLITS)
    names = f"{graph.num_entities:,} entities, {graph.num_relations:,} relations"
    click.echo(f"{printable(out)}: {names}; {sizes}")
    options = ["--backbone", first_backbone(), "--dataset", out, "-o", f"{Path(out).name}.pt"]
    click.echo(f"next: {command_line('pretrain', *options)}", err=True)
