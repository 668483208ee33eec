"""`lmpnn-kge demo`: from nothing to answers, on a graph that comes with the package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lmpnn_kge.cli.options import device_option, to_type
from lmpnn_kge.cli.progress import TrainingBar, bar, sampling_aside
from lmpnn_kge.errors import printable

if TYPE_CHECKING:
    from lmpnn_kge.demo import Demonstration

#: A question to go on with: capitals of Brazil's neighbours that speak Spanish.
NEXT = "capital(?x, ?) & borders(?x, Brazil) & speaks(?x, Spanish)"


@click.command()
@click.option("--backbone", metavar="NAME", help="The first that ships if not given.")
@click.option(
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(),
    metavar="DIR",
    help="Where all of it goes.",
)
@device_option
def demo(backbone: str | None, out: str, device: str) -> None:
    """Embed a graph of the world's countries and cities, train LMPNN on it, and ask it questions.

    All of it takes a few minutes. What is there already in DIR is used again.
    """
    from lmpnn_kge.backbones.plugins import first_backbone
    from lmpnn_kge.demo import demonstrate
    from lmpnn_kge.training.loop import Interrupted

    with bar() as progress:
        try:
            watch, sample = TrainingBar(progress), sampling_aside(progress)
            found = demonstrate(out, backbone or first_backbone(), watch, sample, device)
        except (Interrupted, KeyboardInterrupt):
            click.echo("stopped; the same command goes on")
            sys.exit(130)
    _print(found)


def _print(found: Demonstration) -> None:
    from lmpnn_kge.demo import QUESTIONS
    from lmpnn_kge.methods.results import compare

    rows = {"LMPNN": found.results, "frequency": found.baseline}
    click.echo(f"MRR on test queries, in per cent:\n\n{compare(rows)}\n")
    click.echo("`frequency` ranks entities by how often they end the question's last relation.\n")
    for question, formula in QUESTIONS.items():
        click.echo(f"{question}\n  {formula}")
        for answer in found.answers[formula]:
            click.echo(f"  {answer.score:6.3f}  {printable(answer.label):<24} {answer.mark}")
        click.echo()
    click.echo(
        "known: follows from the training edges; confirmed or contradicted: by those held out.\n"
    )
    click.echo(f"report: {printable(str(found.report))}\n")
    run = str(found.run.folder.path)
    click.echo("next:")
    click.echo(f"  {to_type('ask', run, NEXT)}")
    click.echo(f"  {to_type('evaluate', run, '--split', 'valid')}")
    click.echo(f"  {to_type('inspect', str(found.checkpoint))}")
