"""Checks of files: a written backbone reads back the same, and a checkpoint ranks as recorded."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.backbones.checkpoint import Checkpoint
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.libkge.checkpoint import read_libkge
from lmpnn_kge.backbones.libkge.write import write_checkpoint
from lmpnn_kge.backbones.link_prediction import rank_triples
from lmpnn_kge.backbones.open import build
from lmpnn_kge.backbones.safetensors import read_safetensors, save_backbone
from lmpnn_kge.errors import BackboneError, CheckpointError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import spread_evenly
from lmpnn_kge.testing.outcome import Skipped, Subject, Unmet, check, demand, demand_same

#: LibKGE's metrics that we can compute, and the splits whose triples each one filters out.
METRICS = {
    "mean_reciprocal_rank_filtered": ("train", "valid"),
    "mean_reciprocal_rank_filtered_with_test": ("train", "valid", "test"),
}

#: Number of valid triples to rank, evenly spread over the split.
TRIPLES = 2000


@check("Files keep every field")
def round_trip(subject: Subject) -> str:
    """Written to a file and read back, the backbone gives the same scores."""
    names = [f"entity {i}" for i in range(11)], [f"relation {i}" for i in range(4)]
    for reciprocal in subject.forms:
        model = subject.make(reciprocal=reciprocal, entity_ids=names[0], relation_ids=names[1])
        for change, variant in _variants(model):
            copy = _written_and_read(variant)
            expected = f"the same scores from a file{change}"
            demand_same(_all_scores(copy), _all_scores(variant), expected, 1e-4)
            ids = copy.entity_ids, copy.relation_ids
            demand(ids == names, "the names that were written", f"{ids}")
    models = subject.backbone.libkge_models
    file = f"LibKGE's {models[0]}" if models else ".safetensors"
    forms = ["reciprocal" if reciprocal else "plain" for reciprocal in subject.forms]
    return f"as {file}, {' and '.join(forms)}"


def _variants(model: Backbone) -> Iterator[tuple[str, Backbone]]:
    """Yield the backbone, and copies in which one of its own fields has another valid value."""
    yield "", model
    for name, value in model.own_fields().items():
        other = value
        if isinstance(value, Tensor) and value.is_floating_point():
            other = value + 0.1 * torch.randn_like(value)
        elif isinstance(value, float):
            other = value + 1
        if other is value:
            continue
        try:
            changed = dataclasses.replace(model, **{name: other})
            if model.libkge_models:
                changed.to_libkge()
        except BackboneError:
            continue  # the model or LibKGE does not support this value
        yield f", with another {name}", changed


def _written_and_read(model: Backbone) -> Backbone:
    """Copy a backbone through a LibKGE package, or a .safetensors file if it names no model."""
    with tempfile.TemporaryDirectory() as folder:
        if not model.libkge_models:
            file = Path(folder) / "checkpoint.safetensors"
            save_backbone(model, file, name="this backbone")
            return read_safetensors(file).build(type(model))
        file = Path(folder) / "checkpoint.pt"
        write_checkpoint(model, file, dataset="none")
        checkpoint = read_libkge(file)
    demand(
        checkpoint.fits("", type(model)),
        f"a file of {' or '.join(model.libkge_models)}, which the backbone opens",
        checkpoint.model,
    )
    return type(model).from_libkge(checkpoint)


def _all_scores(model: Backbone) -> Tensor:
    """Score every head and relation against every entity."""
    heads = torch.arange(model.num_entities).repeat_interleave(2 * model.num_relations)
    return model.score_tails(heads, torch.arange(len(heads)) % (2 * model.num_relations))


@check("from_libkge(checkpoint, **fields)")
def checkpoint(subject: Subject) -> str:
    """A checkpoint opens, its scores are finite, and its ranks are as good as it recorded."""
    file = subject.checkpoint
    if file is None:
        raise Skipped("no checkpoint was given")
    models = subject.backbone.libkge_models or (subject.name or "this backbone",)
    demand(
        file.fits(subject.name, subject.backbone),
        f"a checkpoint of {' or '.join(models)}",
        f"one of {file.model}",
    )
    graph = None if subject.dataset is None else KnowledgeGraph.open(subject.dataset)
    try:
        model, _ = build(file, subject.backbone, graph)
    except CheckpointError as error:
        raise Unmet("a backbone from the checkpoint", str(error)) from error
    ids = torch.arange(min(64, 2 * model.num_relations))
    scores = model.score_tails(ids % model.num_entities, ids)
    demand(bool(scores.isfinite().all()), "finite scores", "NaN or infinity")
    if graph is None:
        return f"finite scores; not ranked because {file.dataset or 'its dataset'} was not found"
    return _ranks(file, model, graph)


def _ranks(file: Checkpoint, model: Backbone, graph: KnowledgeGraph) -> str:
    """Compare the filtered MRR on valid with the recorded one, or with chance if there is none."""
    rows = graph.vocabulary.rows_in(model.vocabulary)
    recorded = file.validation
    splits = METRICS.get(recorded.metric if recorded else "", METRICS[max(METRICS)])
    valid = rows.of(graph.triples("valid"))
    valid = valid[spread_evenly(len(valid), TRIPLES)]
    if not len(valid):
        return "finite scores; not ranked because its dataset has no valid triples"
    known = np.concatenate([rows.of(graph.triples(split)) for split in splits])
    mrr = rank_triples(model, valid, known).mrr
    found = f"a filtered MRR of {mrr:.4f} on {len(valid)} valid triples"
    if recorded is not None and recorded.metric in METRICS:
        least = recorded.value - max(0.01, 0.08 * recorded.value)
        expected = f"the MRR that the file records, {recorded.value:.4f}"
        demand(mrr >= least, expected, found)
        return f"{found}, recorded {recorded.value:.4f}"
    by_chance = chance(model.num_entities)
    demand(mrr > by_chance, f"more than chance, {by_chance:.4f}", found)
    return f"{found}, by chance {by_chance:.4f}"


def chance(entities: int) -> float:
    """Expected reciprocal rank of an answer at a random position among the entities."""
    return sum(1 / rank for rank in range(1, entities + 1)) / entities
