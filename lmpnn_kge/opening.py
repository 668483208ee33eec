"""From a file to a usable backbone: the checkpoint, the plugin that reads it, the names."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path

from lmpnn_kge.backbone import Backbone
from lmpnn_kge.errors import BackboneError, CheckpointError, PluginError
from lmpnn_kge.libkge.checkpoint import LibkgeCheckpoint, read_checkpoint
from lmpnn_kge.libkge.dataset import LibkgeDataset
from lmpnn_kge.names import join_ids
from lmpnn_kge.plugins import discover, load_backbone


def open_backbone(
    file: str | Path, backbone: str | None = None, dataset: str | Path | None = None
) -> Backbone:
    """Open a LibKGE checkpoint.

    backbone names the plugin; without it, the one that reads the checkpoint's model is taken.
    dataset is a LibKGE dataset folder: it names the entities and relations of a training
    checkpoint, which has no names, and is checked against those of a package.
    """
    checkpoint = read_checkpoint(file)
    _, kind = find_reader(checkpoint, backbone)
    graph = None if dataset is None else LibkgeDataset.open(dataset)
    opened, notes = build(checkpoint, kind, graph)
    for note in notes:
        warnings.warn(f"{file}: {note}", stacklevel=2)
    return opened


def find_reader(
    checkpoint: LibkgeCheckpoint, backbone: str | None = None
) -> tuple[str, type[Backbone]]:
    """The name and class of the backbone that reads a checkpoint."""
    if backbone is not None:
        kind = load_backbone(backbone)
        if not reads(kind, checkpoint.model):
            known = " and ".join(kind.libkge_models) or "no LibKGE model"
            raise CheckpointError(
                f"{checkpoint.path} is a {checkpoint.model}; backbone {backbone!r} reads {known}"
            )
        return backbone, kind
    readers, broken = [], []
    for plugin in discover():
        try:
            kind = plugin.load()
        except PluginError as error:
            broken.append(str(error))
            continue
        if reads(kind, checkpoint.model):
            readers.append((plugin.name, kind))
    if len(readers) > 1:
        names = " and ".join(name for name, _ in readers)
        raise PluginError(
            f"{checkpoint.path} is a {checkpoint.model}, which backbones {names} read; choose one"
        )
    if not readers:
        also = "".join(f"; {reason}" for reason in dict.fromkeys(broken))
        raise PluginError(
            f"{checkpoint.path} is a {checkpoint.model}, which no installed backbone reads{also}"
        )
    return readers[0]


def reads(kind: type[Backbone], model: str) -> bool:
    """Whether a backbone reads a LibKGE model; a file may say `complex` for `ComplEx`."""
    return _plain(model) in map(_plain, kind.libkge_models)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def build(
    checkpoint: LibkgeCheckpoint, kind: type[Backbone], graph: LibkgeDataset | None = None
) -> tuple[Backbone, list[str]]:
    """Make the backbone; with a graph, join their names and say what did not match."""
    try:
        backbone = kind.from_libkge(checkpoint)
    except BackboneError as error:
        raise CheckpointError(f"{checkpoint.path}: {error}") from error
    if graph is None:
        return backbone, []
    entities = join_ids("entity", backbone.entity_ids, backbone.num_entities, graph)
    relations = join_ids("relation", backbone.relation_ids, backbone.num_relations, graph)
    named = dataclasses.replace(backbone, entity_ids=entities.ids, relation_ids=relations.ids)
    return named, [join.note for join in (entities, relations) if join.note]
