"""Options that several commands share, each defined once."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lmpnn_kge.errors import FileError, LmpnnError, one_line, short
from lmpnn_kge.files import read_text
from lmpnn_kge.work.deadline import TIMEOUT

if TYPE_CHECKING:
    from lmpnn_kge.methods.results import Results

F = TypeVar("F", bound=Callable[..., Any])

device_option = click.option(
    "--device",
    default="auto",
    metavar="DEVICE",
    help="Device to compute on: cpu, cuda, cuda:1, mps; auto takes the fastest one.",
)
table_memory_option = click.option(
    "--table-memory",
    metavar="SIZE",
    help="How much of the entity table the device may hold, such as 8GB; a larger table stays in "
    "its file and is read in parts. Default: half of the device's memory.",
)
checkpoint_option = click.option(
    "--checkpoint",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Checkpoint of the embedding: a LibKGE file, or another format (see `loaders`).",
)
moved_checkpoint_option = click.option(
    "--checkpoint",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Checkpoint of the run, if it has moved.",
)
backbone_option = click.option(
    "--backbone", metavar="NAME", help="Backbone plugin; default: detected from the checkpoint."
)
dataset_option = click.option(
    "--dataset",
    type=click.Path(),
    metavar="DIR|FILE",
    help="Graph: a folder, or a file of triples; default: found by the name in the checkpoint.",
)
queries_option = click.option(
    "--queries",
    type=click.Path(),
    metavar="DIR",
    help="Query store; default: the one beside the dataset, sampled if missing.",
)
config_option = click.option(
    "--config", metavar="NAME|FILE", help="Settings to start from (see `config list`)."
)
beside_option = click.option(
    "--beside",
    multiple=True,
    metavar="NAME=FILE",
    help="Add a row on the same queries, from a file that `evaluate --json` printed.",
)
format_option = click.option(
    "--format",
    type=click.Choice(["text", "markdown", "latex", "csv"]),
    help="Form of the printed table. Default: text.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
setting_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one setting (see `config show`); can be repeated.",
)
epochs_option = click.option(
    "--epochs", type=click.IntRange(min=0), metavar="N", help="Short for --set epochs=N."
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Short for --set seed=N."
)


def timeout_option(what: str, default: float = TIMEOUT) -> Callable[[F], F]:
    """--timeout, in seconds, for whatever waits for exact answers."""
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help=f"Stop {what} that takes longer; 0 sets no limit.",
    )


def engine_options(command: F) -> F:
    """The fields of `EngineOptions`, for whatever asks a graph for exact answers."""
    for option in (
        click.option(
            "--parquet",
            metavar="DIR",
            help="With spark: folder for the edges as Parquet that all its machines can read; "
            "default: a temporary folder.",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="With spark: where it runs, such as local[4], spark://HOST:7077, yarn, or "
            "sc://HOST for Spark Connect; default: on this machine.",
        ),
        click.option(
            "--memory",
            metavar="SIZE",
            help="Memory for exact answers, such as 8GB; larger results go to a temporary folder. "
            "Default: half of the machine's.",
        ),
        click.option(
            "--engine",
            default="duckdb",
            show_default=True,
            metavar="NAME",
            help="What computes exact answers: duckdb, in this process, or spark.",
        ),
    ):
        command = option(command)
    return command


def check_svg(out: str) -> None:
    """FileError if a file is named as something else than the SVG that will be written to it."""
    suffix = Path(out).suffix
    if suffix and suffix.lower() != ".svg":
        raise FileError(
            f"{short(out)}: pictures are written as SVG, not as {short(suffix)}; name the file "
            f"{short(Path(out).with_suffix('.svg').name)}"
        )


def out_option(metavar: str, help: str, **more: Any) -> Callable[[F], F]:
    """-o/--out, which every command that writes something has."""
    return click.option("-o", "--out", type=click.Path(), metavar=metavar, help=help, **more)


def command_line(*words: str) -> str:
    """A command to type next; by its path if `lmpnn-kge` alone would not be found."""
    name, called = "lmpnn-kge", Path(sys.argv[0])
    program = str(called) if called.name == name and shutil.which(name) is None else name
    return shlex.join([program, *words])


def given_settings(settings: tuple[str, ...], **options: Any) -> Mapping[str, Any]:
    """The settings of `--set`, and those with an option of their own, if it was used."""
    from lmpnn_kge.settings.values import parse_settings

    given = {key: value for key, value in options.items() if value is not None}
    return parse_settings(settings) | given


def read_beside(given: tuple[str, ...]) -> dict[str, Results]:
    """The results in the files of `--beside`, by name."""
    return dict(map(_named_results, given))


def _named_results(text: str) -> tuple[str, Results]:
    from lmpnn_kge.methods.results import Results

    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise click.UsageError(f"--beside {short(text)!r} is not of the form NAME=FILE")
    try:
        content = json.loads(read_text(file))
    except (OSError, ValueError, RecursionError) as error:
        raise LmpnnError(f"{file} cannot be read: {one_line(error)}") from error
    return name, Results.from_json(content, file)
