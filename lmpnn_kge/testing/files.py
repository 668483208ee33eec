"""Checks of what is read and written: LibKGE's files, and a checkpoint of one's own."""

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
from lmpnn_kge.errors import BackboneError, CheckpointError
from lmpnn_kge.graph.knowledge_graph import Graph, open_graph
from lmpnn_kge.graph.names import rows_of
from lmpnn_kge.testing.outcome import Skipped, Subject, Unmet, check, demand, demand_same

#: LibKGE's names of what we can compute as well, and the splits that each leaves out of a rank.
METRICS = {
    "mean_reciprocal_rank_filtered": ("train", "valid"),
    "mean_reciprocal_rank_filtered_with_test": ("train", "valid", "test"),
}

#: Of the valid split, evenly spread.
TRIPLES = 2000


@check("to_libkge()")
def round_trip(subject: Subject) -> str:
    """Written as a LibKGE checkpoint and read again, it gives the same scores."""
    kind = subject.kind
    if not kind.libkge_models:
        raise Skipped("libkge_models is empty: it has no files, and `pretrain` cannot write it")
    names = [f"entity {i}" for i in range(11)], [f"relation {i}" for i in range(4)]
    written = set()
    for reciprocal in subject.forms:
        model = subject.make(reciprocal=reciprocal, entity_ids=names[0], relation_ids=names[1])
        for what, changed in _variants(model):
            again = _again(changed)
            expected = f"the same scores from a file{what}"
            demand_same(_all_scores(again), _all_scores(changed), expected, 1e-4)
            ids = again.entity_ids, again.relation_ids
            demand(ids == names, "the names that were written", f"{ids}")
        written.add("reciprocal" if reciprocal else "plain")
    return f"as {kind.libkge_models[0]}, {' and '.join(sorted(written))}"


def _variants(model: Backbone) -> Iterator[tuple[str, Backbone]]:
    """A backbone, and others that differ in one of its further fields, as far as they can be."""
    yield "", model
    known = {field.name for field in dataclasses.fields(Backbone)}
    for field in dataclasses.fields(model):
        value = getattr(model, field.name)
        other = value
        if isinstance(value, Tensor) and value.is_floating_point():
            other = value + 0.1 * torch.randn_like(value)
        elif isinstance(value, float):
            other = value + 1
        if field.name in known or other is value:
            continue
        try:
            changed = dataclasses.replace(model, **{field.name: other})
            changed.to_libkge()
        except BackboneError:
            continue  # a value that the model or LibKGE cannot have
        yield f", with another {field.name}", changed


def _again(model: Backbone) -> Backbone:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "checkpoint.pt"
        write_checkpoint(file, model, dataset="none")
        checkpoint = read_libkge(file)
    demand(
        checkpoint.is_read_by("", type(model)),
        f"a file of {' or '.join(model.libkge_models)}, which the backbone reads",
        checkpoint.model,
    )
    return type(model).from_libkge(checkpoint)


def _all_scores(model: Backbone) -> Tensor:
    """Of every head and relation against every entity."""
    heads = torch.arange(model.num_entities).repeat_interleave(2 * model.num_relations)
    return model.score_tails(heads, torch.arange(len(heads)) % (2 * model.num_relations))


@check("from_libkge(checkpoint, **fields)")
def checkpoint(subject: Subject) -> str:
    """A checkpoint opens, its scores are finite, and it ranks as well as it says it does."""
    file = subject.checkpoint
    if file is None:
        raise Skipped("no checkpoint given")
    demand(
        file.is_read_by(subject.name, subject.kind),
        f"a checkpoint of {' or '.join(subject.kind.libkge_models) or 'no LibKGE model'}",
        f"one of {file.model}",
    )
    graph = None if subject.dataset is None else open_graph(subject.dataset)
    try:
        model, _ = build(file, subject.kind, graph)
    except CheckpointError as error:
        raise Unmet("a backbone from the checkpoint", str(error)) from error
    ids = torch.arange(min(64, 2 * model.num_relations))
    scores = model.score_tails(ids % model.num_entities, ids)
    demand(bool(scores.isfinite().all()), "finite scores", "some that are not")
    if graph is None:
        return f"finite scores; {file.dataset or 'its dataset'} is not there to rank"
    return _ranks(file, model, graph)


def _ranks(file: Checkpoint, model: Backbone, graph: Graph) -> str:
    """Filtered MRR on valid beside what the file recorded, or beside chance where it did not."""
    assert model.entity_ids is not None
    assert model.relation_ids is not None
    entities = rows_of(graph.entity_ids, model.entity_ids)
    relations = rows_of(graph.relation_ids, model.relation_ids)

    def triples(split: str) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        s, p, o = graph.triples(split).T
        return np.stack([entities[s], relations[p], entities[o]], axis=1)

    recorded = file.validation
    splits = METRICS.get(recorded.metric if recorded else "", METRICS[max(METRICS)])
    asked = triples("valid")
    asked = asked[np.linspace(0, len(asked) - 1, min(len(asked), TRIPLES)).astype(np.int64)]
    if not len(asked):
        return "finite scores; its dataset has no valid triples"
    mrr = rank_triples(model, asked, np.concatenate([triples(split) for split in splits])).mrr
    found = f"a filtered MRR of {mrr:.4f} on {len(asked)} valid triples"
    if recorded is not None and recorded.metric in METRICS:
        least = recorded.value - max(0.01, 0.08 * recorded.value)
        expected = f"the MRR that is recorded in the file, {recorded.value:.4f}"
        demand(mrr >= least, expected, found)
        return f"{found}, recorded {recorded.value:.4f}"
    by_chance = chance(model.num_entities)
    demand(mrr > by_chance, f"more than chance, {by_chance:.4f}", found)
    return f"{found}, by chance {by_chance:.4f}"


def chance(entities: int) -> float:
    """The mean reciprocal rank of an answer that stands anywhere among entities."""
    return sum(1 / rank for rank in range(1, entities + 1)) / entities
