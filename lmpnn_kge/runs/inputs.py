"""What a run is made of: a checkpoint, the graph it was trained on, and queries over that graph."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.open import build, find_backbone, read_checkpoint
from lmpnn_kge.errors import CheckpointError, DatasetError, RunError
from lmpnn_kge.graph.knowledge_graph import Graph, KnowledgeGraph, fingerprint, open_graph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.renumber import join_store
from lmpnn_kge.queries.sample import GRAPH
from lmpnn_kge.queries.store import QueryStore

#: The folder with datasets, besides ./data and the checkpoint's own.
DATA = "LMPNN_KGE_DATA"

#: Makes a query store of a graph in a folder.
Sample = Callable[[KnowledgeGraph, Path], object]


@dataclass(frozen=True, eq=False)
class Material:
    """All of it, in the numbers of the backbone."""

    checkpoint: Path
    reader: str  # the name of the backbone plugin
    model: str  # the checkpoint's own word for it
    backbone: Backbone
    vocabulary: Vocabulary
    dataset: Path | None
    queries: Path
    store: QueryStore
    notes: list[str]

    @property
    def graph(self) -> str:
        """The graph's name for use in paths: it comes from a file, and must not lead elsewhere."""
        return re.sub(r"[^\w.-]+", "-", self.store.graph)[:100]

    @property
    def name(self) -> str:
        """A name for a run: that of the graph and that of the backbone."""
        return f"{self.graph}-{self.reader}"


def gather(
    checkpoint: str | Path,
    *,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    queries: str | Path | None = None,
    sample: Sample,
) -> Material:
    """Find and join all parts; without queries, those beside the dataset, sampled once."""
    file = read_checkpoint(checkpoint)
    reader, kind = find_backbone(file, backbone)
    folder = Path(dataset) if dataset is not None else find_dataset(file.dataset, file.path)
    if folder is None and (queries is None or file.entity_ids is None):
        raise DatasetError(_not_found(file.dataset, file.path))
    graph = None if folder is None else open_graph(folder)
    opened, notes = build(file, kind, graph)
    if queries is None:
        assert folder is not None
        assert graph is not None
        queries = _queries_beside(folder, graph, sample)
    store, more = join_queries(QueryStore.open(queries), opened)
    return Material(
        file.path,
        reader,
        file.model,
        opened,
        _vocabulary(opened, graph),
        folder,
        Path(queries),
        store,
        [*notes, *more],
    )


def find_dataset(name: str | None, checkpoint: Path) -> Path | None:
    """The folder of the dataset that a checkpoint names, where it is in one of the usual places."""
    return next((folder for folder in _places(name, checkpoint) if folder.is_dir()), None)


def _places(name: str | None, checkpoint: Path) -> list[Path]:
    """A dataset's name comes from a file: it must not lead elsewhere."""
    if name is None or name != Path(name).name or name in ("", ".", ".."):
        return []
    parents = [Path("data"), checkpoint.parent]
    if os.environ.get(DATA):
        parents.insert(1, Path(os.environ[DATA]))
    return [parent / name for parent in parents]


def _not_found(name: str | None, checkpoint: Path) -> str:
    places = _places(name, checkpoint)
    if not places:
        return f"{checkpoint} names no dataset; give its folder with --dataset DIR"
    looked = ", ".join(map(str, places))
    unset = "" if os.environ.get(DATA) else f" (${DATA} is not set)"
    return (
        f"the dataset {name!r} of {checkpoint} is not in {looked}{unset}; LibKGE's "
        "data/download_all.sh makes it, or give its folder with --dataset DIR"
    )


def _queries_beside(dataset: Path, graph: Graph, sample: Sample) -> Path:
    place = dataset.resolve()
    queries = place.with_name(f"{place.name}-queries")
    if queries.exists():
        made_of = QueryStore.open(queries).provenance.get(GRAPH)
        if made_of is not None and made_of != fingerprint(graph):
            raise DatasetError(
                f"{dataset} has changed since {queries} was sampled from it; remove that, or give "
                "queries with --queries DIR"
            )
        return queries
    if not os.access(place.parent, os.W_OK):  # found out before the sampling, not after
        raise DatasetError(
            f"queries cannot be written beside {dataset}; make them elsewhere with "
            "`lmpnn-kge sample` and give their folder with --queries DIR"
        )
    sample(KnowledgeGraph.open(dataset), queries)
    return queries


def join_queries(store: QueryStore, backbone: Backbone) -> tuple[QueryStore, list[str]]:
    """A store in the numbers of a backbone with names; RunError where they share no query."""
    if backbone.entity_ids is None or backbone.relation_ids is None:
        raise CheckpointError("a checkpoint without names needs its dataset: give --dataset DIR")
    joined, report = join_store(store, backbone.entity_ids, backbone.relation_ids)
    if not any(len(found) for split in joined.splits.values() for found in split.values()):
        reason = f"is of another graph than the checkpoint: {report}"
        empty = not any(len(found) for split in store.splits.values() for found in split.values())
        raise RunError(f"{store.folder} {'has no queries' if empty else reason}")
    return joined, [f"{store.folder}: {report}"] if report.entities or report.relations else []


def _vocabulary(backbone: Backbone, graph: Graph | None) -> Vocabulary:
    """The names of a backbone's rows, with the labels that a dataset has for them."""
    assert backbone.entity_ids is not None
    assert backbone.relation_ids is not None
    if graph is None:
        return Vocabulary(backbone.entity_ids, backbone.relation_ids)
    entities = dict(zip(graph.entity_ids, graph.entity_strings(), strict=True))
    relations = dict(zip(graph.relation_ids, graph.relation_strings(), strict=True))
    return Vocabulary(
        backbone.entity_ids,
        backbone.relation_ids,
        [entities.get(id_) for id_ in backbone.entity_ids],
        [relations.get(id_) for id_ in backbone.relation_ids],
    )


def facts_of(material: Material, hash_of: Callable[[Path], str]) -> dict[str, Any]:
    """What a run should remember of its material."""
    manifest = material.queries / "manifest.json"  # has their shapes and their seed
    return {
        "backbone": material.reader,
        "checkpoint": {
            "file": str(material.checkpoint.resolve()),
            "sha256": hash_of(material.checkpoint),
            "model": material.model,
        },
        "dataset": None if material.dataset is None else str(material.dataset.resolve()),
        "queries": {
            "folder": str(material.queries.resolve()),
            "sha256": hash_of(manifest),
            "graph": material.store.graph,
            "provenance": dict(material.store.provenance),
        },
    }
