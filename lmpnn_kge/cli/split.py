"""`lmpnn-kge split`: a graph to train on from one file of triples."""

from __future__ import annotations

from pathlib import Path

import click

from lmpnn_kge.cli.options import to_type
from lmpnn_kge.errors import printable

share = click.FloatRange(min=0, max=1, min_open=True, max_open=True)


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "-o", "--out", required=True, type=click.Path(), metavar="DIR", help="The new dataset folder."
)
@click.option(
    "--valid",
    default=0.1,
    show_default=True,
    type=share,
    metavar="SHARE",
    help="Of each relation, to validate on.",
)
@click.option(
    "--test",
    default=0.1,
    show_default=True,
    type=share,
    metavar="SHARE",
    help="Of each relation, to test on.",
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
    help="Another one holds out other triples.",
)
def split(file: str, out: str, valid: float, test: float, header: bool | None, seed: int) -> None:
    """Make a graph of a FILE of triples, some of which are held out of training.

    Every line is a head, a relation and a tail, with tabs between them, or commas if FILE ends in
    .csv. The graph is a LibKGE dataset folder. Every entity keeps a triple to train on.
    """
    from lmpnn_kge.backbones.plugins import first_backbone
    from lmpnn_kge.graph.formats.libkge import SPLITS
    from lmpnn_kge.graph.split import split_file

    graph = split_file(file, out, valid=valid, test=test, header=header, seed=seed)
    click.echo(
        f"{printable(out)}: {len(graph.entity_ids):,} entities, {len(graph.relation_ids):,} "
        f"relations; " + ", ".join(f"{len(graph.triples(name)):,} {name}" for name in SPLITS)
    )
    options = ["--backbone", first_backbone(), "--dataset", out, "-o", f"{Path(out).name}.pt"]
    click.echo(f"next: {to_type('pretrain', *options)}", err=True)
