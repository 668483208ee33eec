"""The list of the plugins of a group, with the health of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from lmpnn_kge.cli.text import labelled
from lmpnn_kge.errors import PluginError, printable

if TYPE_CHECKING:
    from lmpnn_kge.backbones.discovery import Plugin


def print_plugins(group: str, as_json: bool) -> None:
    """Print a line for each plugin of a group."""
    from lmpnn_kge.backbones.discovery import discover

    rows = [describe(plugin) for plugin in discover(group)]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    lines = [("name", "distribution", "health"), *(tuple(row.values()) for row in rows)]
    names, distributions, healths = (
        [printable(cell) for cell in column] for column in zip(*lines, strict=True)
    )
    widths = max(map(len, names)), max(map(len, distributions))
    for name, distribution, health in zip(names, distributions, healths, strict=True):
        label = f"{name:<{widths[0]}} {distribution:<{widths[1]}}"
        click.echo(labelled(label, health, len(label) + 1))


def describe(plugin: Plugin) -> dict[str, str]:
    """One row of the list; for a broken plugin, health is the reason."""
    try:
        plugin.load_hook()
        health = "ok"
    except PluginError as error:
        health = str(error)
    return {"name": plugin.name, "distribution": plugin.distribution, "health": health}
