"""`lmpnn-kge translate`: a formula as SPARQL, and SPARQL as a formula."""

from __future__ import annotations

import click

from lmpnn_kge.errors import printable


@click.command()
@click.argument("query")
@click.option(
    "--dataset",
    type=click.Path(),
    metavar="DIR|FILE",
    help="Graph, a folder or a file of triples: labels are replaced by ids, and names checked.",
)
def translate(query: str, dataset: str | None) -> None:
    """Print a formula as SPARQL, or a SPARQL SELECT query as a formula.

    Both have the same answers over the same triples. In SPARQL, a name that is an IRI stands for
    itself. Any other name is an IRI that begins with kge:, such as <kge:South%20Sudan>.
    """
    from lmpnn_kge.query.normal_form import normalise
    from lmpnn_kge.query.parser import read_query
    from lmpnn_kge.query.sparql.read import is_sparql
    from lmpnn_kge.query.sparql.write import to_sparql

    formula = read_query(query).formula
    if dataset is not None:
        from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph

        formula = KnowledgeGraph.open(dataset).with_ids(query)
    normalise(formula)  # refuses a part that is not connected to ?
    click.echo(printable(str(formula)) if is_sparql(query) else to_sparql(formula).rstrip())
