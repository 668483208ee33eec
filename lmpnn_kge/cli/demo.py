"""`lmpnn-kge demo`: from nothing to answers, on a graph that comes with the package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lmpnn_kge.cli.options import command_line, device_option, out_option
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import printable

if TYPE_CHECKING:
    from lmpnn_kge.demo import Demonstration

#: A question to try next: capitals of Brazil's neighbours that speak Spanish.
NEXT = "capital(?x, ?) & borders(?x, Brazil) & speaks(?x, Spanish)"


@click.command()
@click.option("--backbone", metavar="NAME", help="Backbone to use; default: complex.")
@out_option("DIR", "Folder to write everything to.", default="demo", show_default=True)
@device_option
def demo(backbone: str | None, out: str, device: str) -> None:
    """Embed a graph of countries and cities, train LMPNN on it, and ask it questions.

    This takes one to a few minutes. Finished parts in DIR are reused.
    """
    from lmpnn_kge.backbones.discovery import first_backbone
    from lmpnn_kge.demo import demonstrate
    from lmpnn_kge.training.interrupt import Interrupted

    with terminal() as listener:
        try:
            shown = demonstrate(out, backbone or first_backbone(), device, listener)
        except (Interrupted, KeyboardInterrupt):
            click.echo("stopped; the same command continues")
            sys.exit(130)
    _print(shown)


def _print(shown: Demonstration) -> None:
    from lmpnn_kge.demo import QUESTIONS
    from lmpnn_kge.methods.results import compare

    rows = {"LMPNN": [shown.results], "frequency": [shown.baseline]}
    click.echo(f"MRR on test queries, in percent:\n\n{compare(rows)}\n")
    click.echo("`frequency` ranks entities by how often they end the question's last relation.\n")
    for question, formula in QUESTIONS.items():
        click.echo(f"{question}\n  {formula}")
        for answer in shown.answers[formula]:
            click.echo(f"  {answer.score:6.3f}  {printable(answer.label):<24} {answer.mark}")
        click.echo()
    click.echo("known: follows from the training edges")
    click.echo("confirmed, contradicted: by the edges that were held out\n")
    click.echo(f"report: {printable(str(shown.report))}\n")
    run = str(shown.run.folder.path)
    click.echo("next:")
    click.echo(f"  {command_line('ask', run, NEXT)}")
    click.echo(f"  {command_line('evaluate', run, '--split', 'valid')}")
    click.echo(f"  {command_line('inspect', str(shown.checkpoint))}")
