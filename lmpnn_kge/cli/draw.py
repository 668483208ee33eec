"""`lmpnn-kge draw`: a picture of a query graph."""

from __future__ import annotations

from pathlib import Path

import click

from lmpnn_kge.errors import LmpnnError


@click.command()
@click.argument("formula")
@click.option("-o", "--out", required=True, type=click.Path(), metavar="FILE.svg", help="Where to.")
def draw(formula: str, out: str) -> None:
    """Draw the query graph of FORMULA, or of a pattern by its name, as SVG."""
    from lmpnn_kge.query.draw import draw as picture
    from lmpnn_kge.query.parser import parse
    from lmpnn_kge.query.patterns import named_patterns

    patterns = named_patterns()
    svg = picture(patterns[formula].formula if formula in patterns else parse(formula))
    try:
        Path(out).write_text(svg, encoding="utf-8")
    except OSError as error:
        raise LmpnnError(f"{out} cannot be written: {error.strerror}") from error
