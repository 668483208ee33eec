"""`lmpnn-kge backbones`: list the installed backbones, check one, or start a new one."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from lmpnn_kge.cli.options import json_option
from lmpnn_kge.cli.text import Group, labelled, line_width
from lmpnn_kge.errors import PluginError, printable

if TYPE_CHECKING:
    from lmpnn_kge.backbones.discovery import Plugin
    from lmpnn_kge.testing import Outcome

#: Titles of `--verbose`, and the keys of their values in a row.
TITLES = {
    "type": "type",
    "f(h, r)": "f",
    "inverse": "inverse",
    "LibKGE": "libkge_models",
    "distribution": "distribution",
    "health": "health",
}


@click.group(cls=Group, invoke_without_command=True)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also show the LibKGE models, the distribution and the health of each backbone.",
)
@json_option
@click.pass_context
def backbones(ctx: click.Context, verbose: bool, as_json: bool) -> None:
    """List the installed backbones: the embedding models that checkpoints can hold.

    A backbone that cannot be imported is listed as broken, with the reason.
    """
    from lmpnn_kge.backbones.discovery import discover

    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError(f"write --json after {ctx.invoked_subcommand}")
        return
    plugins = discover()
    rows = [describe(plugin) for plugin in plugins]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif verbose:
        click.echo("\n\n".join(map(_block, rows)))
    else:
        _print_table(rows)
        for plugin, row in zip(plugins, rows, strict=True):
            if row["health"] != "ok":
                click.secho(labelled("", row["health"], 0), fg="red")
            elif not plugin.ships:
                click.echo(labelled("", f"{plugin.name} is from {plugin.distribution}", 0))


@backbones.command()
@click.argument("name")
@click.option(
    "--checkpoint",
    type=click.Path(readable=False),
    metavar="FILE",
    help="A checkpoint that the backbone should open; it must reach the MRR that it records.",
)
@click.option(
    "--dataset",
    type=click.Path(),
    metavar="DIR",
    help="Folder of the checkpoint's graph, in any format. By default it is searched for by its "
    "name in ./data, in $LMPNN_KGE_DATA and beside the checkpoint.",
)
@json_option
@click.pass_context
def check(
    ctx: click.Context, name: str, checkpoint: str | None, dataset: str | None, as_json: bool
) -> None:
    """Check that the backbone NAME keeps the contract.

    Prints one line per check, and exits with 1 if a check fails. One of the checks trains the
    backbone for some seconds on the embedded graph.
    """
    from lmpnn_kge.testing import CHECKS, make_subject

    subject = make_subject(name, checkpoint, dataset)
    outcomes = []
    for kit_check in CHECKS:
        outcomes.append(kit_check.on(subject))
        if not as_json:
            _print_outcome(outcomes[-1])
    failed = [outcome.name for outcome in outcomes if outcome.status == "failed"]
    passed = sum(outcome.status == "passed" for outcome in outcomes)
    if as_json:
        rows = [
            {key: value for key, value in vars(outcome).items() if key != "cause"}
            for outcome in outcomes
        ]
        content = {"backbone": name, "passed": not failed, "checks": rows}
        click.echo(json.dumps(content, indent=2))
    else:
        bad = f", {len(failed)} failed: {', '.join(failed)}" if failed else ""
        click.echo(f"{name}: {passed} passed, {len(outcomes) - passed - len(failed)} skipped{bad}")
    if failed:
        ctx.exit(1)


def _print_outcome(outcome: Outcome) -> None:
    sign = {"passed": "✓", "failed": "✗", "skipped": "–"}[outcome.status]
    detail = outcome.detail if outcome.status != "failed" else outcome.shows
    click.echo(labelled(f"{sign} {outcome.name}", detail, 15))
    if outcome.status == "failed":
        finding = {"expected": outcome.expected, "found": outcome.found, "written": outcome.where}
        for title, text in finding.items():
            click.echo(labelled(f"    {title}", text or "", 14))


@backbones.command()
@click.argument("name")
@click.option(
    "--type",
    "score_type",
    type=click.Choice(["inner-product", "distance"]),
    default="inner-product",
    show_default=True,
    help="How the model compares f(h, r) with a tail.",
)
@click.option(
    "--libkge-model",
    metavar="CLASS",
    help="Class name of the model in LibKGE, if LibKGE has it: the backbone then opens LibKGE's "
    "checkpoints of that model.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(),
    metavar="DIR",
    help="Folder to create; lmpnn-kge-NAME by default.",
)
@click.option("--into", type=click.Path(), hidden=True, help="The old name of --out.")
def new(
    name: str, score_type: str, libkge_model: str | None, out: str | None, into: str | None
) -> None:
    """Create a Python project for a new backbone called NAME.

    Replace its simple model with your own. The project works from the start: it can be installed,
    passes its tests, and can be trained with `lmpnn-kge pretrain`.
    """
    from lmpnn_kge.scaffold import write_scaffold

    folder = write_scaffold(name, score_type, out or into, libkge_model=libkge_model)
    shown = shlex.quote(printable(str(folder)))
    click.echo(f"wrote {shown}; next:\n")
    click.echo(f"  cd {shown}\n  pip install -e '.[test]'\n  pytest")
    click.echo(f"  lmpnn-kge backbones check {name}")


def describe(plugin: Plugin) -> dict[str, Any]:
    """One row of the list; for a broken plugin, health is the reason."""
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


def _block(row: dict[str, Any]) -> str:
    """All facts about one backbone, one per line."""
    shown = row | {"libkge_models": ", ".join(row["libkge_models"])}
    lines = [labelled(f"  {title}", shown[key] or "none", 16) for title, key in TITLES.items()]
    return "\n".join([printable(row["name"]), *lines])


def _print_table(rows: list[dict[str, Any]]) -> None:
    """One line per backbone in 80 columns; only words that do not fit move to a second line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text  # rich would look for markup in a plain string

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for title in ("name", "type", "f(h, r)", "inverse"):
        table.add_column(title, no_wrap=title in ("name", "type"))
    for row in rows:
        if row["health"] == "ok":
            cells = [row["type"], row["f"], row["inverse"] or "none"]
        else:
            cells = ["broken", "", ""]
        table.add_row(*(Text(printable(cell)) for cell in [row["name"], *cells]))
    console = Console()
    if not console.is_terminal:
        console.width = line_width()
    console.print(table)
