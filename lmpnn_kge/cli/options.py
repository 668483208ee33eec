"""Options that several commands have, each said once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

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


def given_settings(settings: tuple[str, ...], **short: Any) -> Mapping[str, Any]:
    """The settings of `--set`, and those that have an option of their own, where it was used."""
    from lmpnn_kge.config import parse_settings

    return parse_settings(settings) | {k: value for k, value in short.items() if value is not None}
