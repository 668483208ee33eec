"""`lmpnn-kge split`: a graph to train on from files of triples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lmpnn_kge.cli.options import command_line, out_option
from lmpnn_kge.errors import printable

share = click.FloatRange(min=0, max=1, min_open=True, max_open=True)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True))
@out_option("DIR", "Dataset folder to write.", required=True)
@click.option(
    "--columns",
    metavar="HEAD,RELATION,TAIL",
    help="Columns of head, relation and tail, by name or by number from 1; others are ignored.",
)
@click.option(
    "--labels",
    type=click.Path(),
    metavar="FILE",
    help="File with an id, a label and perhaps a type per line, for entities and relations.",
)
@click.option(
    "--relation",
    metavar="NAME",
    help="Relation of every line, for files of two columns: a head and a tail.",
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line names the columns; default: if --columns names one of them, or if "
    "it has the words head, relation and tail, or subject, predicate and object.",
)
@click.option(
    "--delimiter",
    metavar="CHAR",
    help="Character between the columns; default: found in a .csv file, else a tab.",
)
@click.option(
    "--quotes/--no-quotes",
    default=None,
    help="Whether a field can be in double quotes; default: yes, but not in tab-separated files.",
)
@click.option(
    "--format",
    metavar="FORMAT",
    help="Format of the files, such as csv or nt; default: by their ending. Needed for - (stdin).",
)
@click.option(
    "--language",
    metavar="TAG",
    help="Language of the labels in RDF files; default: en.",
)
@click.option(
    "--skip-bad",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Bad lines to leave out before the files are refused.",
)
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
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Seed that decides which triples are held out.",
)
def split(files: tuple[str, ...], out: str, quotes: bool | None, **options: Any) -> None:
    """Split FILES of triples into train, valid and test, as a LibKGE dataset folder.

    FILES are tables (.csv, .tsv, .jsonl, .parquet) with a head, a relation and a tail per row, or
    RDF (.nt, .nq, .ttl, .trig, .rdf, .jsonld); patterns and compressed files (.gz, .zst) work too,
    and - is the standard input. Every entity keeps a triple to train on.
    """
    from lmpnn_kge.backbones.discovery import first_backbone
    from lmpnn_kge.graph.split import split_file
    from lmpnn_kge.graph.triples import SPLITS

    graph = split_file(files, out, quoted=quotes, **options)
    for note in graph.notes:
        click.echo(printable(f"note: {note}"), err=True)
    sizes = ", ".join(f"{len(graph.triples(name)):,} {name}" for name in SPLITS)
    names = f"{graph.num_entities:,} entities, {graph.num_relations:,} relations"
    click.echo(f"{printable(out)}: {names}; {sizes}")
    following = ["--backbone", first_backbone(), "--dataset", out, "-o", f"{Path(out).name}.pt"]
    click.echo(f"next: {command_line('pretrain', *following)}", err=True)
