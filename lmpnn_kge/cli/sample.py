"""`lmpnn-kge sample`: training and evaluation queries for a graph."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from lmpnn_kge.cli.options import engine_options, out_option, timeout_option
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import QueryError, choices, printable

if TYPE_CHECKING:
    from lmpnn_kge.query.patterns import Pattern


@click.command()
@click.option(
    "--dataset",
    required=True,
    type=click.Path(),
    metavar="DIR|FILE",
    help="Graph: a dataset folder, or a file of triples, which is split as by `split`.",
)
@out_option("DIR", "Query store to write.", required=True)
@click.option(
    "--preset",
    type=click.Choice(["betae", "hard"]),
    default="betae",
    show_default=True,
    help="Protocol: betae is that of the BetaE benchmark; hard has valid and test queries only, "
    "with as many answers for every number of missing edges.",
)
@click.option(
    "--types",
    metavar="NAME,NAME,…",
    help="Sample only these types: BetaE types such as 2p, EFO-1 types, EFO-k types such as 2f-p, "
    "or your own.",
)
@click.option(
    "--patterns",
    type=click.Path(),
    metavar="FILE",
    help="YAML file of your own types, with lines such as `2p: r1(s1,e1)&r2(e1,f)`.",
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Queries per type and split; with --preset hard, answers per type, split and number of "
    "missing edges. Default: the composition of the preset, scaled to the graph.",
)
@click.option(
    "--rule",
    "switches",
    multiple=True,
    metavar="NAME=on|off",
    help="Switch a rule of the preset, such as lost-answer=off; can be repeated.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random draws.",
)
@timeout_option("a batch of 10,000 queries")
@engine_options
def sample(
    dataset: str,
    out: str,
    preset: str,
    types: str | None,
    patterns: str | None,
    count: int | None,
    switches: tuple[str, ...],
    seed: int,
    timeout: float,
    **engine: Any,
) -> None:
    """Sample queries with exact answers, and write them as a query store."""
    from lmpnn_kge.files import check_target
    from lmpnn_kge.graph.engine import EngineOptions
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.queries.hard import HARD_PRESET
    from lmpnn_kge.queries.sample import BETAE_PRESET, sample_store
    from lmpnn_kge.queries.store import is_store

    options = EngineOptions(**engine)
    check_target(out, is_store)
    protocol = {p.name: p for p in (BETAE_PRESET, HARD_PRESET)}[preset]
    rules = protocol.rules.switched(switches)
    chosen = _chosen(types, patterns, protocol.types)
    graph = KnowledgeGraph.open(dataset).answered_by(options)
    requests = protocol.requests(graph, chosen, count, rules)
    provenance = {"types": types, "count": count}
    with terminal() as listener:
        store = sample_store(
            graph,
            out,
            requests,
            seed,
            provenance,
            listener,
            timeout=timeout,
            preset=protocol,
            rules=rules,
        )
    for request in requests:
        sampled = store.splits[request.split][request.name]
        if lack := protocol.sampler.lack(request, sampled):
            click.echo(f"{request.split} {request.name}: {lack}", err=True)
    totals = (f"{sum(map(len, p.values())):,} {split}" for split, p in store.splits.items())
    click.echo(f"{printable(out)}: {', '.join(totals)} queries")


def _chosen(
    types: str | None, file: str | None, preset: Collection[str]
) -> dict[str, Pattern] | None:
    """The patterns that a user chose; None is the preset's own choice."""
    from lmpnn_kge.query.patterns import named_patterns

    patterns = named_patterns(*([file] if file else []))
    own = [name for name in patterns if name not in named_patterns()]
    if types is None:
        return {name: patterns[name] for name in (*preset, *own)} if own else None
    names = [name.strip() for name in types.split(",") if name.strip()]
    for name in names:
        if name not in patterns:
            raise QueryError(f"there is no type {name!r}; {choices(name, patterns)}")
    if not names:
        raise QueryError(f"--types is empty; {choices('', patterns)}")
    return {name: patterns[name] for name in names}
