"""`lmpnn-kge backbones`: what is installed, and whether it works."""

from __future__ import annotations

import json
from typing import Any

import click

from lmpnn_kge.errors import PluginError, printable
from lmpnn_kge.plugins import Plugin, discover


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def backbones(as_json: bool) -> None:
    """List the installed backbones: what they compute, what they read, whether they load."""
    rows = [describe(plugin) for plugin in discover()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        _print_table(rows)


def describe(plugin: Plugin) -> dict[str, Any]:
    """One row of the list; a plugin that does not load is described by its reason."""
    row: dict[str, Any] = {"name": plugin.name}
    try:
        backbone = plugin.load()
        row |= {
            "type": backbone.score_type.value,
            "f": backbone.formula,
            "inverse": backbone.inverse_formula,
            "libkge_models": list(backbone.libkge_models),
            "health": "ok",
        }
    except PluginError as error:
        row |= dict.fromkeys(("type", "f", "inverse"))
        row |= {"libkge_models": [], "health": str(error)}
    return row | {"distribution": plugin.distribution}


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text  # not a plain string, in which rich would look for markup

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for title in ("name", "type", "f(h, r)", "inverse", "LibKGE", "distribution", "health"):
        table.add_column(title, overflow="fold")
    for row in rows:
        ok = row["health"] == "ok"
        cells = [row["type"], row["f"], row["inverse"] or (ok and "none") or None]
        cells += [", ".join(row["libkge_models"]), row["distribution"], "ok" if ok else "broken"]
        table.add_row(*(Text(printable(cell or "?")) for cell in [row["name"], *cells]))
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # a file has no right edge: one line for each
    console.print(table)
    for row in rows:
        if row["health"] != "ok":
            console.print(Text(printable(row["health"]), style="red"), soft_wrap=True)
