"""From a file to a usable backbone: the checkpoint, the plugin that reads it, the names."""

from __future__ import annotations

import dataclasses
import os
import warnings
from pathlib import Path

from lmpnn_kge.backbone import Backbone
from lmpnn_kge.checkpoint import Checkpoint
from lmpnn_kge.errors import BackboneError, CheckpointError, PluginError
from lmpnn_kge.kg import Graph, open_graph
from lmpnn_kge.libkge.checkpoint import read_checkpoint as read_libkge
from lmpnn_kge.names import join_ids
from lmpnn_kge.plugins import LOADERS, discover, load_backbone


def open_backbone(
    file: str | Path, backbone: str | None = None, dataset: str | Path | None = None
) -> Backbone:
    """Open a checkpoint, LibKGE's or any that an installed loader reads.

    backbone names the plugin; without it, the one that reads the checkpoint's model is taken.
    dataset is the folder of its graph: it names the entities and relations of a training
    checkpoint, which has no names, and is checked against those of a package.
    """
    checkpoint = read_checkpoint(file)
    _, kind = find_reader(checkpoint, backbone)
    graph = None if dataset is None else open_graph(dataset)
    opened, notes = build(checkpoint, kind, graph)
    for note in notes:
        warnings.warn(f"{file}: {note}", stacklevel=2)
    return opened


def read_checkpoint(file: str | Path) -> Checkpoint:
    """What a file holds: LibKGE's at once, any other by the loader that claims it."""
    path = Path(file)
    try:
        return read_libkge(path)
    except CheckpointError as error:
        if not os.path.isfile(path):
            raise
        return _load(path, error)


def _load(path: Path, otherwise: CheckpointError) -> Checkpoint:
    """What the one loader finds that claims a file; else what those say that were asked."""
    found: list[tuple[str, Checkpoint]] = []
    refused, broken = [], []
    for plugin in discover(LOADERS):
        try:
            checkpoint = plugin.read(path)
        except CheckpointError as error:
            refused.append(str(error) if str(path) in str(error) else f"{path}: {error}")
        except PluginError as error:
            broken.append(str(error))
        else:
            if checkpoint is not None:
                found.append((f"{plugin} of {plugin.distribution}", checkpoint))
    if len(found) > 1:
        names = " and by ".join(name for name, _ in found)
        raise PluginError(f"{path} is claimed by {names}; uninstall all but one")
    if not found:
        raise CheckpointError("; ".join([*(refused or [str(otherwise)]), *dict.fromkeys(broken)]))
    return found[0][1]


def find_reader(checkpoint: Checkpoint, backbone: str | None = None) -> tuple[str, type[Backbone]]:
    """The name and class of the backbone that reads a checkpoint."""
    if backbone is not None:
        kind = load_backbone(backbone)
        if not checkpoint.is_read_by(backbone, kind):
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
        if checkpoint.is_read_by(plugin.name, kind):
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


def build(
    checkpoint: Checkpoint, kind: type[Backbone], graph: Graph | None = None
) -> tuple[Backbone, list[str]]:
    """Make the backbone; with a graph, join their names and say what did not match."""
    try:
        backbone: Backbone = checkpoint.build(kind)
    except BackboneError as error:
        raise CheckpointError(f"{checkpoint.path}: {error}") from error
    if graph is None:
        return backbone, []
    entities = join_ids("entity", backbone.entity_ids, backbone.num_entities, graph)
    relations = join_ids("relation", backbone.relation_ids, backbone.num_relations, graph)
    named = dataclasses.replace(backbone, entity_ids=entities.ids, relation_ids=relations.ids)
    return named, [join.note for join in (entities, relations) if join.note]
