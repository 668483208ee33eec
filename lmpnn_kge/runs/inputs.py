"""The inputs of a run: a checkpoint, the graph it was trained on, and queries over that graph."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.open import build, find_backbone, read_checkpoint
from lmpnn_kge.errors import CheckpointError, DatasetError, RunError
from lmpnn_kge.files import relative
from lmpnn_kge.files.leftovers import restore
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.renumber import renumber_store
from lmpnn_kge.queries.sample import GRAPH, sample_store
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.training.provenance import CheckpointSource, QueriesSource
from lmpnn_kge.work.listener import SILENT, Listener

#: The environment variable with a folder of datasets, besides ./data and the checkpoint's own.
DATA = "LMPNN_KGE_DATA"


@dataclass(frozen=True, eq=False)
class Inputs:
    """A backbone, its graph if it was found, and queries in the rows of the backbone."""

    backbone_name: str  # of its plugin
    backbone: Backbone
    vocabulary: Vocabulary  # the backbone's names, with the labels of the graph
    graph: KnowledgeGraph | None
    store: QueryStore
    checkpoint: CheckpointSource
    queries: QueriesSource
    notes: tuple[str, ...]

    @property
    def graph_name(self) -> str:
        """The graph's name for use in paths: it comes from a file, and must not lead elsewhere."""
        return re.sub(r"[^\w.-]+", "-", self.store.graph)[:100]

    @property
    def name(self) -> str:
        """A name for a run: that of the graph and that of the backbone."""
        return f"{self.graph_name}-{self.backbone_name}"

    @property
    def graph_hash(self) -> str | None:
        """The fingerprint of the graph, if there is one."""
        return None if self.graph is None else self.graph.fingerprint

    def training_queries(self) -> dict[str, Queries]:
        """The queries to learn from, each with an answer; RunError if there are none."""
        patterns = self.store.splits.get("train", {})
        answered = {name: queries.answered for name, queries in patterns.items()}
        answered = {name: queries for name, queries in answered.items() if len(queries)}
        if not answered:
            raise RunError(f"{self.queries.folder} has no training queries")
        return answered


def gather(
    checkpoint: str | Path,
    *,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    queries: str | Path | None = None,
    listener: Listener = SILENT,
) -> Inputs:
    """Find and join all inputs; without queries, use those beside the dataset, sampled once."""
    file = read_checkpoint(checkpoint)
    name, backbone_class = find_backbone(file, backbone)
    folder = Path(dataset) if dataset is not None else find_dataset(file.dataset, file.path)
    if folder is None and (queries is None or file.entity_ids is None):
        raise DatasetError(_not_found(file.dataset, file.path))
    graph = None if folder is None else KnowledgeGraph.open(folder)
    opened, notes = build(file, backbone_class, graph)
    if not opened.has_names:
        raise CheckpointError(
            f"{file.path} has no names of entities and relations: give its dataset with "
            "--dataset DIR"
        )
    if queries is not None or graph is None:
        assert queries is not None  # checked above, by the dataset
        store = QueryStore.open(queries)
    else:
        store = _queries_beside(graph, listener)
    renumbered, store_notes = renumber_queries(store, opened.vocabulary)
    names = opened.vocabulary
    return Inputs(
        backbone_name=name,
        backbone=opened,
        vocabulary=names if graph is None else names.labelled_by(graph.vocabulary),
        graph=graph,
        store=renumbered,
        checkpoint=CheckpointSource.of(file.path, file.model),
        queries=QueriesSource.of(store),
        notes=(*(() if graph is None else graph.notes), *notes, *store_notes),
    )


def open_embedding(
    checkpoint: str | Path, *, backbone: str | None = None, dataset: str | Path | None = None
) -> tuple[Backbone, KnowledgeGraph, list[str]]:
    """A checkpoint as a backbone, its graph, and notes; no queries are needed."""
    file = read_checkpoint(checkpoint)
    _, backbone_class = find_backbone(file, backbone)
    folder = Path(dataset) if dataset is not None else find_dataset(file.dataset, file.path)
    if folder is None:
        raise DatasetError(_not_found(file.dataset, file.path))
    graph = KnowledgeGraph.open(folder)
    opened, notes = build(file, backbone_class, graph)
    return opened, graph, [*graph.notes, *notes]


def find_dataset(name: str | None, checkpoint: Path) -> Path | None:
    """The folder of the dataset that a checkpoint names, if it is in one of the usual folders."""
    return next((folder for folder in _candidates(name, checkpoint) if folder.is_dir()), None)


def _candidates(name: str | None, checkpoint: Path) -> list[Path]:
    """A dataset's name comes from a file, and must not lead elsewhere."""
    if name is None or name != Path(name).name or name in ("", ".", ".."):
        return []
    parents = [Path("data"), checkpoint.parent]
    if os.environ.get(DATA):
        parents.insert(1, Path(os.environ[DATA]))
    return [parent / name for parent in parents]


def _not_found(name: str | None, checkpoint: Path) -> str:
    candidates = _candidates(name, checkpoint)
    if not candidates:
        return f"{checkpoint} names no dataset; give its folder with --dataset DIR"
    looked = ", ".join(map(str, candidates))
    unset = "" if os.environ.get(DATA) else f" (${DATA} is not set)"
    return (
        f"the dataset {name!r} of {checkpoint} is not in {looked}{unset}; LibKGE's "
        "data/download_all.sh makes it, or give its folder with --dataset DIR"
    )


def queries_beside(graph: KnowledgeGraph) -> Path:
    """The folder of the queries that belong to a graph's folder or file."""
    dataset = graph.folder.resolve()
    name = dataset.name if dataset.is_dir() else graph.name  # a file: its name without the ending
    return dataset.with_name(f"{name}-queries")


def _queries_beside(graph: KnowledgeGraph, listener: Listener) -> QueryStore:
    """The query store beside a graph's folder or file; sampled first if there is none."""
    folder = queries_beside(graph)
    restore(folder)
    if folder.exists():
        store = QueryStore.open(folder)
        sampled_from = store.provenance.get(GRAPH)
        if sampled_from is not None and sampled_from != graph.fingerprint:
            raise DatasetError(
                f"{graph.folder} has changed since {folder} was sampled from it; remove {folder}, "
                "or give queries with --queries DIR"
            )
        return store
    if not os.access(folder.parent, os.W_OK):  # found out before the sampling, not after
        raise DatasetError(
            f"queries cannot be written beside {graph.folder}; make them elsewhere with "
            "`lmpnn-kge sample` and give their folder with --queries DIR"
        )
    listener.note(f"sampling queries to {relative(folder)}, once")
    return sample_store(graph, folder, listener=listener)


def renumber_queries(store: QueryStore, names: Vocabulary) -> tuple[QueryStore, list[str]]:
    """A store in the rows of a backbone, with notes; RunError if they share no query."""
    renumbered, dropped = renumber_store(store, names)
    if not len(renumbered):
        reason = f"is of another graph than the checkpoint: {dropped}"
        raise RunError(f"{store.folder} {reason if len(store) else 'has no queries'}")
    return renumbered, [f"{store.folder}: {dropped}"] if dropped else []
