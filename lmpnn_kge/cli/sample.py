"""`lmpnn-kge sample`: training and evaluation queries for a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lmpnn_kge.cli.progress import sample_with_progress
from lmpnn_kge.errors import QueryError, choices, printable

if TYPE_CHECKING:
    from lmpnn_kge.query.patterns import Pattern


@click.command()
@click.option("--dataset", required=True, type=click.Path(), metavar="DIR", help="The graph.")
@click.option("--out", required=True, type=click.Path(), metavar="DIR", help="The query store.")
@click.option(
    "--preset",
    type=click.Choice(["betae"]),
    default="betae",
    show_default=True,
    help="How many queries of which types, scaled to the graph.",
)
@click.option("--types", metavar="NAME,NAME,…", help="Only these types; EFO-1 and your own too.")
@click.option("--patterns", type=click.Path(), metavar="FILE", help="YAML of your own types.")
@click.option(
    "--count", type=click.IntRange(min=1), metavar="N", help="Queries per type and split."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Another one draws other queries.",
)
def sample(
    dataset: str,
    out: str,
    preset: str,
    types: str | None,
    patterns: str | None,
    count: int | None,
    seed: int,
) -> None:
    """Sample queries with exact answers by BetaE's protocol, and write them as a query store."""
    from lmpnn_kge.files import check_place
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.queries.sample import betae_preset
    from lmpnn_kge.queries.store import is_store

    check_place(out, is_store)
    chosen = _chosen(types, patterns)
    graph = KnowledgeGraph.open(dataset)
    requests = betae_preset(graph, chosen, count)
    asked = {"preset": preset, "types": types, "count": count}
    splits = sample_with_progress(graph, out, requests, seed, asked).splits
    total = {split: sum(map(len, queries.values())) for split, queries in splits.items()}
    for request in requests:
        found = len(splits[request.split][request.name])
        if request.count is not None and found < request.count:
            click.echo(
                f"{request.split} {request.name}: only {found} of {request.count} could be found",
                err=True,
            )
    counts = ", ".join(f"{count:,} {split}" for split, count in total.items())
    click.echo(f"{printable(out)}: {counts} queries")


def _chosen(types: str | None, file: str | None) -> dict[str, Pattern] | None:
    """The patterns that were asked for; None is the preset's own choice."""
    from lmpnn_kge.query.patterns import BETAE, named_patterns

    patterns = named_patterns(*([file] if file else []))
    own = [name for name in patterns if name not in named_patterns()]
    if types is None:
        return {name: patterns[name] for name in (*BETAE, *own)} if own else None
    names = [name.strip() for name in types.split(",") if name.strip()]
    for name in names:
        if name not in patterns:
            raise QueryError(f"no type is called {name!r}; {choices(name, patterns)}")
    if not names:
        raise QueryError(f"--types names none; {choices('', patterns)}")
    return {name: patterns[name] for name in names}
