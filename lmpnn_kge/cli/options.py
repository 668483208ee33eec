"""Options that several commands have, each said once."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lmpnn_kge.errors import LmpnnError, short

device_option = click.option(
    "--device", default="auto", metavar="auto|cpu|cuda[:i]|mps", help="Where to compute."
)
moved_checkpoint_option = click.option(
    "--checkpoint",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Its checkpoint, if it has moved.",
)
reader_option = click.option(
    "--backbone", metavar="NAME", help="Its backbone; the checkpoint says what it is."
)
dataset_option = click.option(
    "--dataset", type=click.Path(), metavar="DIR", help="Its dataset, if not found."
)
queries_option = click.option(
    "--queries", type=click.Path(), metavar="DIR", help="A query store; else sampled."
)
config_option = click.option(
    "--config", metavar="NAME|FILE", help="Settings; see `lmpnn-kge config`."
)
beside_option = click.option(
    "--beside",
    multiple=True,
    metavar="NAME=FILE",
    help="A further row on the same queries, from what `evaluate --json` printed.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
setting_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="One setting."
)
epochs_option = click.option(
    "--epochs", type=click.IntRange(min=0), metavar="N", help="Short for --set epochs=N."
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Short for --set seed=N."
)


def to_type(*words: str) -> str:
    """A command to type next; by the path of this one where its name alone is not found."""
    name, called = "lmpnn-kge", Path(sys.argv[0])
    program = str(called) if called.name == name and shutil.which(name) is None else name
    return shlex.join([program, *words])


def given_settings(settings: tuple[str, ...], **short: Any) -> Mapping[str, Any]:
    """The settings of `--set`, and those that have an option of their own, where it was used."""
    from lmpnn_kge.settings import parse_settings

    return parse_settings(settings) | {k: value for k, value in short.items() if value is not None}


def read_beside(given: tuple[str, ...]) -> dict[str, Any]:
    """What the files of `--beside` hold, by name."""
    return dict(map(_named_file, given))


def _named_file(text: str) -> tuple[str, Any]:
    """NAME=FILE as a name and what the file holds."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise click.UsageError(f"--beside {short(text)!r} is not of the form NAME=FILE")
    try:
        return name, json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LmpnnError(f"{file} cannot be read: {short(str(error))}") from error
