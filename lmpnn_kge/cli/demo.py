"""`lmpnn-kge demo`: from nothing to answers, on a graph that comes with the package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lmpnn_kge.cli.options import command_line, device_option, out_option
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.cli.serve import serve_runs
from lmpnn_kge.errors import printable

if TYPE_CHECKING:
    from lmpnn_kge.demo import Demonstration


@click.command()
@click.option("--backbone", metavar="NAME", help="Backbone to use; default: complex.")
@out_option("DIR", "Folder to write everything to.", default="demo", show_default=True)
@click.option("--serve", is_flag=True, help="Then open a page to ask questions (see `serve`).")
@device_option
def demo(backbone: str | None, out: str, serve: bool, device: str) -> None:
    """Embed a graph of countries and cities, train LMPNN on it, and ask questions.

    This takes a few minutes. Finished parts in DIR are reused.
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
    if serve:
        serve_runs([str(shown.run.folder.path)], open_page=True, device=device)
    else:
        _print(shown)


def _print(shown: Demonstration) -> None:
    from lmpnn_kge.demo import EXPLAINED, QUESTIONS
    from lmpnn_kge.methods.results import compare

    rows = {method: [results] for method, results in shown.results.items()}
    click.echo(f"MRR on test queries, in percent:\n\n{compare(rows)}\n")
    click.echo(
        "search uses the scores of the embedding as truths of edges; hybrid has learnt on\n"
        "valid queries to do that better; frequency ranks entities by how often they end\n"
        "the last relation of a query.\n"
    )
    for question, formula in QUESTIONS.items():
        click.echo(f"{question}\n  {formula}")
        answers = shown.answers[formula]
        width = max(len(printable(answer.label)) for answer in answers)
        for answer, figure in zip(answers, answers.figures, strict=True):
            click.echo(f"  {figure:>6}  {printable(answer.label):<{width}}  {answer.mark}")
        click.echo()
    click.echo(f"Why {printable(shown.explained.label)}?")
    for line in shown.explained.reasons[0].lines():
        click.echo(f"  {printable(line)}")
    click.echo(
        "\nThe figure before an answer is its probability. A known answer follows from the\n"
        "training edges; with negation it has none, because a missing edge may deny it.\n"
    )
    click.echo(f"reason: {printable(str(shown.why))}")
    click.echo(f"report: {printable(str(shown.report))}\n")
    run = str(shown.run.folder.path)
    click.echo("next:")
    click.echo(f"  {command_line('ask', run, '--explain', EXPLAINED)}")
    click.echo(f"  {command_line('serve', run, '--open')}")
    click.echo(f"  {command_line('predict', run, '--relation', 'borders')}")
    click.echo(f"  {command_line('evaluate', run, '--split', 'valid')}")
    click.echo(f"  {command_line('inspect', str(shown.checkpoint))}")
