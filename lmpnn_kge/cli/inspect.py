"""`lmpnn-kge inspect`: show the content of a checkpoint, and what is missing to use it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from lmpnn_kge.cli.options import json_option
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.cli.text import labelled
from lmpnn_kge.errors import BackboneError, LmpnnError, PluginError

if TYPE_CHECKING:
    from pathlib import Path

    from lmpnn_kge.backbones.checkpoint import Checkpoint
    from lmpnn_kge.backbones.contract import Backbone
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph


@click.command()
@click.argument("file", type=click.Path(readable=False))
@click.option(
    "--backbone",
    metavar="NAME",
    help="Open the checkpoint with this backbone plugin. By default the file determines it.",
)
@click.option(
    "--dataset",
    type=click.Path(),
    metavar="DIR",
    help="Folder of the graph that the checkpoint was trained on: a LibKGE or BetaE dataset, or "
    "train, valid and test files of named triples.",
)
@click.option(
    "--rank",
    metavar="SPLIT",
    help="Rank the triples of a split, such as test, and print filtered MRR and Hits. Without "
    "--dataset, the graph is searched for by its name in ./data, in $LMPNN_KGE_DATA and beside "
    "the checkpoint.",
)
@click.option(
    "--reliability",
    is_flag=True,
    help="Fit the probabilities of edges on the valid triples, and print their expected "
    "calibration error on the test triples, beside that of sigmoids of the scores. The graph is "
    "found as for --rank.",
)
@click.option(
    "--against-libkge",
    is_flag=True,
    help="Compare the scores with those of LibKGE itself, if it is installed.",
)
@json_option
def inspect(
    file: str,
    backbone: str | None,
    dataset: str | None,
    rank: str | None,
    reliability: bool,
    against_libkge: bool,
    as_json: bool,
) -> None:
    """Show the content of a checkpoint FILE, without running code from the file."""
    from lmpnn_kge.backbones.open import build, find_backbone, read_checkpoint
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph

    checkpoint = read_checkpoint(file)
    purpose = f"--rank {rank}" if rank is not None else "--reliability" if reliability else None
    if purpose is not None and dataset is None:
        dataset = str(_dataset_for(checkpoint, purpose))
    graph = None if dataset is None else KnowledgeGraph.open(dataset)
    facts = describe(checkpoint)
    try:
        facts["backbone"], model = find_backbone(checkpoint, backbone)
    except PluginError as error:
        if backbone is not None or purpose is not None or against_libkge:
            raise
        facts["missing"].append(str(error))
    else:
        opened, facts["notes"] = build(checkpoint, model, graph)
        facts |= {"type": model.score_type.value, "ids": opened.entity_ids is not None}
        if opened.entity_ids is None:
            facts["missing"].append(
                "names of entities and relations; give the folder of "
                f"{checkpoint.dataset or 'its dataset'} with --dataset DIR"
            )
        if against_libkge:
            facts["against_libkge"] = _compare(checkpoint, opened)
        if rank is not None:
            assert graph is not None
            facts["ranking"] = _rank(checkpoint, opened, graph, rank)
        if reliability:
            assert graph is not None
            facts["reliability"] = _reliability(opened, graph)
    if as_json:
        click.echo(json.dumps(facts, indent=2, allow_nan=False))
    else:
        _print_facts(facts)


def _dataset_for(checkpoint: Checkpoint, purpose: str) -> Path:
    """Find the graph of a checkpoint as `train` does; LmpnnError if it is not there."""
    from lmpnn_kge.runs.inputs import find_dataset

    folder = find_dataset(checkpoint.dataset, checkpoint.path)
    if folder is None:
        name = checkpoint.dataset
        reason = f"{name!r} is not in ./data, in $LMPNN_KGE_DATA or beside the checkpoint"
        raise LmpnnError(
            f"{checkpoint.path}: {purpose} needs the dataset, but "
            f"{'the file does not name it' if name is None else reason}; give its folder with "
            "--dataset DIR"
        )
    return folder


def describe(checkpoint: Checkpoint) -> dict[str, Any]:
    """Facts that the file itself has, and empty values for those that are worked out later."""
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


def _rank(
    checkpoint: Checkpoint, opened: Backbone, graph: KnowledgeGraph, split: str
) -> dict[str, Any]:
    from lmpnn_kge.backbones.link_prediction import rank_split

    try:
        with terminal() as listener:
            ranking = rank_split(opened, graph, split, listener)
    except BackboneError as error:
        raise checkpoint.error(str(error)) from error
    return {
        "split": split,
        "mrr": ranking.mrr,
        "hits@1": ranking.hits_at_1,
        "hits@3": ranking.hits_at_3,
        "hits@10": ranking.hits_at_10,
    }


def _reliability(opened: Backbone, graph: KnowledgeGraph) -> dict[str, Any]:
    from lmpnn_kge.runs.reliability import measure_edges

    return {
        population: {name: reliability.to_json() for name, reliability in measured.items()}
        for population, measured in measure_edges(opened, graph).items()
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
        lines.append(("ranking", f"{ranking['split']}: MRR {ranking['mrr']:.4f}{hits}"))
    for population, measured in facts.get("reliability", {}).items():
        errors = {name: f"{content['error']:.4f}" for name, content in measured.items()}
        figures = (
            "{calibrated}, of sigmoids {raw}".format(**errors) if errors else "no test triples"
        )
        purpose = {"asked": "edges of reasons", "every": "predicted edges"}[population]
        lines.append(("calibration", f"{purpose}: expected error {figures}"))
    for name, value in lines:
        click.echo(labelled(name, "not recorded" if value is None else str(value), 12))
