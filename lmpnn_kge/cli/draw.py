"""`lmpnn-kge draw`: a picture of a query graph."""

from __future__ import annotations

from pathlib import Path

import click

from lmpnn_kge.cli.options import check_svg, out_option


@click.command()
@click.argument("formula")
@out_option("FILE.svg", "SVG file to write.", required=True)
def draw(formula: str, out: str) -> None:
    """Draw the query graph of a FORMULA, or of a query type such as 2in, as SVG.

    The formula may also be a SPARQL query.
    """
    from lmpnn_kge.files import write_file
    from lmpnn_kge.query.draw import draw as draw_svg
    from lmpnn_kge.query.parser import parse
    from lmpnn_kge.query.patterns import named_patterns

    check_svg(out)
    patterns = named_patterns()
    svg = draw_svg(patterns[formula].formula if formula in patterns else parse(formula))
    write_file(svg.encode(), Path(out))
