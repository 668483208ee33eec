"""`lmpnn-kge backbones`: what is installed, whether it keeps the contract, and a new one."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from lmpnn_kge.backbones.plugins import Plugin, discover
from lmpnn_kge.cli.options import json_option
from lmpnn_kge.errors import PluginError, printable

if TYPE_CHECKING:
    from lmpnn_kge.testing import Outcome


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def backbones(ctx: click.Context, as_json: bool) -> None:
    """List the installed backbones: what they compute, what they read, whether they load."""
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError(f"write --json after {ctx.invoked_subcommand}")
        return
    rows = [describe(plugin) for plugin in discover()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        _print_table(rows)


@backbones.command()
@click.argument("name")
@click.option(
    "--checkpoint", type=click.Path(readable=False), metavar="FILE", help="One that it should read."
)
@click.option(
    "--dataset",
    type=click.Path(),
    metavar="DIR",
    help="The checkpoint's LibKGE dataset folder, if it is in no usual place.",
)
@json_option
@click.pass_context
def check(
    ctx: click.Context, name: str, checkpoint: str | None, dataset: str | None, as_json: bool
) -> None:
    """Say whether the backbone NAME keeps the contract, check by check; exit with 1 if not.

    One of the checks trains it for some seconds on the embedded graph.
    """
    from lmpnn_kge.testing import CHECKS, make_subject

    subject = make_subject(name, checkpoint, dataset)
    found = []
    for one in CHECKS:
        found.append(one.on(subject))
        if not as_json:
            _print_outcome(found[-1])
    failed = [outcome.name for outcome in found if outcome.status == "failed"]
    passed = sum(outcome.status == "passed" for outcome in found)
    if as_json:
        rows = [
            {key: value for key, value in vars(outcome).items() if key != "cause"}
            for outcome in found
        ]
        content = {"backbone": name, "passed": not failed, "checks": rows}
        click.echo(json.dumps(content, indent=2))
    else:
        bad = f", {len(failed)} failed: {', '.join(failed)}" if failed else ""
        click.echo(f"{name}: {passed} passed, {len(found) - passed - len(failed)} skipped{bad}")
    if failed:
        ctx.exit(1)


def _print_outcome(outcome: Outcome) -> None:
    sign = {"passed": "✓", "failed": "✗", "skipped": "–"}[outcome.status]
    detail = outcome.detail if outcome.status != "failed" else outcome.shows
    click.echo(f"{sign} {outcome.name:<12} {printable(detail)}")
    if outcome.status == "failed":
        told = {"expected": outcome.expected, "found": outcome.found, "written": outcome.where}
        for title, text in told.items():
            click.echo(f"    {title:<9} {printable(text or '')}")


@backbones.command()
@click.argument("name")
@click.option(
    "--type",
    "score_type",
    type=click.Choice(["inner-product", "distance"]),
    default="inner-product",
    show_default=True,
    help="How it compares f(h, r) with a tail.",
)
@click.option(
    "--into", type=click.Path(), metavar="DIR", help="A new folder; lmpnn-kge-NAME if not given."
)
def new(name: str, score_type: str, into: str | None) -> None:
    """Write a distribution with a backbone called NAME, to put your own f into.

    It works as it is: it can be installed, passes its tests, and can be pretrained.
    """
    from lmpnn_kge.scaffold import write_scaffold

    folder = write_scaffold(name, score_type, into)
    shown = shlex.quote(printable(str(folder)))
    click.echo(f"wrote {shown}; next:\n")
    click.echo(f"  cd {shown}\n  pip install -e '.[test]'\n  pytest")
    click.echo(f"  lmpnn-kge backbones check {name}")


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
