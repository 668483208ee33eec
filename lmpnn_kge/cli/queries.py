"""`lmpnn-kge queries`: query stores, to and from BetaE's folders, and what is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lmpnn_kge.cli.options import json_option, out_option
from lmpnn_kge.cli.text import Group
from lmpnn_kge.errors import LmpnnError, choices, printable

if TYPE_CHECKING:
    from lmpnn_kge.queries.columns import Queries
    from lmpnn_kge.queries.store import QueryStore


@click.group(cls=Group)
def queries() -> None:
    """Import, export and show query stores: folders of queries with their answers."""


@queries.command("import")
@click.argument("folder", type=click.Path(), metavar="BETAE_DIR")
@out_option("DIR", "Query store to write.", required=True)
@click.option(
    "--checkpoint",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Checkpoint whose entities and relations the queries are joined to, by name.",
)
def import_(folder: str, out: str, checkpoint: str | None) -> None:
    """Read the queries of a BetaE folder into a store, without running its pickles.

    With --checkpoint, queries over names that the checkpoint lacks are left out and counted.
    """
    from lmpnn_kge.files import check_target
    from lmpnn_kge.queries.betae import import_betae
    from lmpnn_kge.queries.published import published_text
    from lmpnn_kge.queries.store import is_store, write_store

    check_target(out, is_store)
    imported, notes = import_betae(folder)
    if checkpoint is not None:
        imported, report = _joined(imported, checkpoint)
        notes.append(report)
    _print_table(describe(write_store(imported, out)))
    _print_notes([*notes, published_text(imported.provenance)])


def _joined(store: QueryStore, checkpoint: str) -> tuple[QueryStore, str]:
    from lmpnn_kge.backbones.open import read_checkpoint
    from lmpnn_kge.graph.vocabulary import Vocabulary
    from lmpnn_kge.queries.renumber import renumber_store

    file = read_checkpoint(checkpoint)
    if file.entity_ids is None or file.relation_ids is None:
        raise file.error(f"a {file.kind} has no names to join by; LibKGE's packages have them")
    joined, dropped = renumber_store(store, Vocabulary(file.entity_ids, file.relation_ids))
    return joined, f"joined to {checkpoint}: {dropped}"


@queries.command()
@click.argument("store", type=click.Path())
@out_option("DIR", "BetaE folder to write.", required=True)
@click.option(
    "--dataset",
    type=click.Path(),
    metavar="DIR",
    help="Folder of the graph, to write its triples as well.",
)
def export(store: str, out: str, dataset: str | None) -> None:
    """Write a STORE as a BetaE folder."""
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.queries.betae import export_betae
    from lmpnn_kge.queries.store import QueryStore

    graph = None if dataset is None else KnowledgeGraph.open(dataset)
    _print_notes(export_betae(QueryStore.open(store), out, graph))


@queries.command()
@click.argument("store", type=click.Path())
@click.option("--split", metavar="SPLIT", help="Show only train, valid or test.")
@click.option("--type", "name", metavar="NAME", help="Print queries of this type, such as 2p.")
@click.option(
    "-n",
    "most",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of queries to print.",
)
@json_option
def show(store: str, split: str | None, name: str | None, most: int, as_json: bool) -> None:
    """Show how many queries and answers a STORE holds, or some of the queries themselves."""
    from lmpnn_kge.queries.store import QueryStore

    opened = QueryStore.open(store)
    splits = {s: found for s, found in opened.splits.items() if split in (None, s)}
    if not splits:
        raise LmpnnError(f"{store} has no split {split!r}; {choices(split or '', opened.splits)}")
    if name is None:
        rows = [row for row in describe(opened) if row["split"] in splits]
        _print_json(rows) if as_json else _print_table(rows)
        return
    having = [(s, found[name]) for s, found in splits.items() if name in found]
    if not having:
        names = {name for found in splits.values() for name in found}
        raise LmpnnError(f"{store} has no queries of type {name!r}; {choices(name, names)}")
    samples = [sample for s, found in having for sample in _samples(opened, s, found, most)]
    _print_json(samples) if as_json else _print_samples(samples)


@queries.command()
@click.argument("store", type=click.Path())
@json_option
def info(store: str, as_json: bool) -> None:
    """Show where a STORE comes from: its graph, and its preset and rules or the files imported."""
    from lmpnn_kge.queries.store import QueryStore

    opened = QueryStore.open(store)
    counts = {split: sum(map(len, found.values())) for split, found in opened.splits.items()}
    if as_json:
        provenance = dict(opened.provenance)
        _print_json({"graph": opened.graph, "queries": counts, "provenance": provenance})
        return
    lines = {
        "graph": opened.graph,
        "queries": ", ".join(f"{count:,} {split}" for split, count in counts.items()),
        **_origin(opened.provenance),
    }
    for name, value in lines.items():
        click.echo(f"{name:<10} {printable(value)}")


def _origin(provenance: Mapping[str, Any]) -> dict[str, str]:
    """What made a store, as lines with a heading each."""
    from lmpnn_kge.queries.published import published_text
    from lmpnn_kge.queries.rules import rules_of

    if "imported" in provenance:
        return {"imported": f"{provenance['imported']}: {published_text(provenance)}"}
    rules = rules_of(provenance)
    facts = ("made_by", "preset", "seed", "types", "count")
    lines = {name.replace("_", " "): provenance.get(name) for name in facts}
    lines["rules"] = "not recorded" if rules is None else ", ".join(n for n in rules if rules[n])
    if rules is not None:
        lines["off"] = ", ".join(name for name in rules if not rules[name])
    return {name: str(value) for name, value in lines.items() if value not in (None, "")}


@queries.command()
@click.argument("store", type=click.Path())
def verify(store: str) -> None:
    """Read all arrays of a STORE, and compare them with the checksums in its manifest."""
    from lmpnn_kge.queries.store import QueryStore

    opened = QueryStore.open(store)
    checked = opened.verify()
    click.echo(f"{printable(store)}: {len(opened):,} queries, no damage found")
    if not checked:
        click.echo("note: it was written by a version that recorded no checksums", err=True)


def describe(store: QueryStore) -> list[dict[str, Any]]:
    """For each split and pattern, how many queries there are and how many answers they have."""
    return [
        {
            "split": split,
            "type": name,
            "pattern": str(found.pattern),
            "queries": len(found),
            "easy": len(found.easy.values) / max(len(found), 1),
            "hard": len(found.hard.values) / max(len(found), 1),
        }
        for split, patterns in store.splits.items()
        for name, found in patterns.items()
    ]


def _samples(store: QueryStore, split: str, found: Queries, most: int) -> list[dict[str, Any]]:
    return [
        {
            "split": split,
            "query": str(store.question(found, row)),
            "easy": store.names(found.easy.of(row)),
            "hard": store.names(found.hard.of(row)),
        }
        for row in range(min(most, len(found)))
    ]


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2))


def _print_table(rows: list[dict[str, Any]]) -> None:
    width = max([4, *(len(printable(row["type"])) for row in rows)])
    click.echo(f"{'split':<6} {'type':<{width}} {'queries':>9} {'easy':>8} {'hard':>8}  pattern")
    for row in rows:
        counts = f"{row['queries']:>9,} {row['easy']:>8.1f} {row['hard']:>8.1f}"
        click.echo(
            f"{row['split']:<6} {printable(row['type']):<{width}} {counts}  {row['pattern']}"
        )


def _print_samples(samples: list[dict[str, Any]]) -> None:
    for sample in samples:
        click.echo(f"{sample['split']:<6} {printable(sample['query'])}")
        for side in ("easy", "hard"):
            if names := sample[side]:
                more = f", … ({len(names)} in all)" if len(names) > 10 else ""
                shown = [n if isinstance(n, str) else f"({', '.join(n)})" for n in names[:10]]
                click.echo(f"  {side}  {printable(', '.join(shown))}{more}")


def _print_notes(notes: list[str]) -> None:
    for note in notes:
        click.echo(f"note: {printable(note)}", err=True)
