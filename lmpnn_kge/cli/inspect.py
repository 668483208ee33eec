"""`lmpnn-kge inspect`: what is in a checkpoint, and what it takes to use it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from lmpnn_kge.cli.options import json_option
from lmpnn_kge.errors import BackboneError, LmpnnError, PluginError, printable

if TYPE_CHECKING:
    from lmpnn_kge.backbones.checkpoint import Checkpoint
    from lmpnn_kge.backbones.contract import Backbone
    from lmpnn_kge.graph.knowledge_graph import Graph


@click.command()
@click.argument("file", type=click.Path(readable=False))
@click.option("--backbone", metavar="NAME", help="Read it with this backbone.")
@click.option("--dataset", type=click.Path(), metavar="DIR", help="Its LibKGE dataset folder.")
@click.option("--rank", metavar="SPLIT", help="Rank a split of the dataset: filtered MRR and Hits.")
@click.option("--against-libkge", is_flag=True, help="Compare scores with LibKGE's, if installed.")
@json_option
def inspect(
    file: str,
    backbone: str | None,
    dataset: str | None,
    rank: str | None,
    against_libkge: bool,
    as_json: bool,
) -> None:
    """Say what a checkpoint FILE holds; nothing in the file is run."""
    from lmpnn_kge.backbones.open import build, find_backbone, read_checkpoint
    from lmpnn_kge.graph.knowledge_graph import open_graph

    if rank is not None and dataset is None:
        raise LmpnnError(f"--rank {rank} needs --dataset DIR, the folder with the triples")
    checkpoint = read_checkpoint(file)
    graph = None if dataset is None else open_graph(dataset)
    facts = describe(checkpoint)
    try:
        facts["backbone"], kind = find_backbone(checkpoint, backbone)
    except PluginError as error:
        if backbone is not None or rank is not None or against_libkge:
            raise
        facts["missing"].append(str(error))
    else:
        opened, facts["notes"] = build(checkpoint, kind, graph)
        facts |= {"type": kind.score_type.value, "ids": opened.entity_ids is not None}
        if opened.entity_ids is None:
            facts["missing"].append(
                f"names of entities and relations: give --dataset, the folder of "
                f"{checkpoint.dataset or 'its dataset'} with entity_ids.del and relation_ids.del"
            )
        if against_libkge:
            facts["against_libkge"] = _compare(checkpoint, opened)
        if rank is not None:
            assert graph is not None
            facts["ranking"] = _rank(checkpoint, opened, graph, rank)
    if as_json:
        click.echo(json.dumps(facts, indent=2, allow_nan=False))
    else:
        _print_facts(facts)


def describe(checkpoint: Checkpoint) -> dict[str, Any]:
    """What the file says of itself."""
    validation = checkpoint.validation
    return {
        "file": str(checkpoint.path),
        "kind": checkpoint.kind,
        "model": checkpoint.model,
        "reciprocal": checkpoint.reciprocal,
        "entities": len(checkpoint.entities),
        "relations": checkpoint.num_relations,
        "entity_width": checkpoint.entities.shape[1],
        "relation_width": checkpoint.relations.shape[1],
        "dataset": checkpoint.dataset,
        "epoch": checkpoint.epoch,
        "validation": validation and dict(vars(validation)),
        "backbone": None,
        "type": None,
        "ids": checkpoint.entity_ids is not None,
        "missing": [],
        "notes": [],
    }


def _compare(checkpoint: Checkpoint, opened: Backbone) -> dict[str, Any]:
    from lmpnn_kge.backbones.libkge.compare import LibkgeMissing, largest_difference

    try:
        return {"available": True, "largest_difference": largest_difference(checkpoint, opened)}
    except LibkgeMissing as missing:
        return {"available": False, "reason": str(missing)}


def _rank(checkpoint: Checkpoint, opened: Backbone, graph: Graph, split: str) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import track

    from lmpnn_kge.backbones.link_prediction import rank_split

    console = Console(stderr=True)
    try:
        ranking = rank_split(
            opened,
            graph,
            split,
            lambda chunks: track(
                chunks,
                f"ranking {split}",
                console=console,
                transient=True,
                disable=not console.is_terminal,
            ),
        )
    except BackboneError as error:
        raise checkpoint.error(str(error)) from error
    return {
        "split": split,
        "mrr": ranking.mrr,
        "hits@1": ranking.hits_at_1,
        "hits@3": ranking.hits_at_3,
        "hits@10": ranking.hits_at_10,
    }


def _print_facts(facts: dict[str, Any]) -> None:
    validation, ranking = facts["validation"], facts.get("ranking")
    lines = [
        ("file", facts["file"]),
        ("kind", facts["kind"]),
        ("model", f"{facts['model']}, {'reciprocal' if facts['reciprocal'] else 'plain'}"),
        ("entities", f"{facts['entities']:,} of width {facts['entity_width']}"),
        ("relations", f"{facts['relations']:,} of width {facts['relation_width']}"),
        ("names", "yes" if facts["ids"] else "no"),
        ("dataset", facts["dataset"]),
        ("epoch", facts["epoch"]),
        ("validation", validation and f"{validation['metric']} {validation['value']:.4f}"),
        ("backbone", facts["backbone"] and f"{facts['backbone']} ({facts['type']})"),
        *(("missing", missing) for missing in facts["missing"]),
        *(("note", note) for note in facts["notes"]),
    ]
    if compared := facts.get("against_libkge"):
        difference = compared.get("largest_difference")
        text = f"scores differ by at most {difference:.1e}" if difference is not None else None
        lines.append(("LibKGE", text or compared["reason"]))
    if ranking:
        hits = "".join(f"  Hits@{k} {ranking[f'hits@{k}']:.4f}" for k in (1, 3, 10))
        lines.append(("ranking", f"{ranking['split']}, filtered: MRR {ranking['mrr']:.4f}{hits}"))
    for name, value in lines:
        click.echo(f"{name:<11} {'not recorded' if value is None else printable(str(value))}")
