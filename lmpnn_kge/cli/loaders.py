"""`lmpnn-kge loaders`: which files can be read beside LibKGE's."""

from __future__ import annotations

import json

import click

from lmpnn_kge.backbones.plugins import LOADERS, Plugin, discover
from lmpnn_kge.cli.options import json_option
from lmpnn_kge.errors import PluginError, printable


@click.command()
@json_option
def loaders(as_json: bool) -> None:
    """List the installed loaders, which read files that LibKGE did not write."""
    rows = [describe(plugin) for plugin in discover(LOADERS)]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    lines = [("name", "distribution", "health"), *(tuple(row.values()) for row in rows)]
    cells = [[printable(cell) for cell in line] for line in lines]
    name, distribution, _ = (max(map(len, column)) for column in zip(*cells, strict=True))
    for line in cells:
        click.echo(f"{line[0]:<{name}} {line[1]:<{distribution}} {line[2]}")


def describe(plugin: Plugin) -> dict[str, str]:
    """One row of the list; a loader that does not load is described by its reason."""
    try:
        plugin.load_reader()
        health = "ok"
    except PluginError as error:
        health = str(error)
    return {"name": plugin.name, "distribution": plugin.distribution, "health": health}
