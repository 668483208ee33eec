"""From a file to a usable backbone: the checkpoint, the plugin that reads it, the names."""

from __future__ import annotations

import dataclasses
import os
import warnings
from pathlib import Path

from lmpnn_kge.backbones.checkpoint import Checkpoint, plain_name
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.plugins import LOADERS, Plugin, discover, load_backbone
from lmpnn_kge.errors import BackboneError, CheckpointError, PluginError
from lmpnn_kge.graph.knowledge_graph import Graph, open_graph
from lmpnn_kge.graph.names import join_ids


def open_backbone(
    file: str | Path, backbone: str | None = None, dataset: str | Path | None = None
) -> Backbone:
    """Open a checkpoint, LibKGE's or any that an installed loader reads.

    backbone names the plugin; without it, the one that reads the checkpoint's model is taken.
    dataset is the folder of its graph: it names the entities and relations of a training
    checkpoint, which has no names, and is checked against those of a package.
    """
    checkpoint = read_checkpoint(file)
    _, kind = find_backbone(checkpoint, backbone)
    graph = None if dataset is None else open_graph(dataset)
    opened, notes = build(checkpoint, kind, graph)
    for note in notes:
        warnings.warn(f"{file}: {note}", stacklevel=2)
    return opened


def read_checkpoint(file: str | Path) -> Checkpoint:
    """Read a file with the one installed loader that knows its format."""
    path = Path(file)
    if not os.path.lexists(path):
        raise CheckpointError(f"{path} does not exist")
    if not os.path.isfile(path):
        raise CheckpointError(f"{path} is not a file; name the checkpoint itself")
    if not path.stat().st_size:
        raise CheckpointError(f"{path} is empty")
    claims: list[tuple[Plugin, Checkpoint]] = []
    refusals, broken = [], []
    loaders = discover(LOADERS)
    for loader in loaders:
        try:
            checkpoint = loader.read(path)
        except CheckpointError as error:
            refusals.append(str(error) if str(path) in str(error) else f"{path}: {error}")
        except PluginError as error:
            broken.append(str(error))
        else:
            if checkpoint is not None:
                claims.append((loader, checkpoint))
    if len(claims) > 1:
        names = " and by ".join(f"{loader} of {loader.distribution}" for loader, _ in claims)
        raise PluginError(f"{path} is claimed by {names}; uninstall all but one")
    if claims:
        return claims[0][1]
    names = ", ".join(dict.fromkeys(loader.name for loader in loaders))
    unknown = f"{path}: not a readable checkpoint: no loader knows its format (installed: {names})"
    raise CheckpointError("; ".join([*(refusals or [unknown]), *dict.fromkeys(broken)]))


def find_backbone(checkpoint: Checkpoint, name: str | None = None) -> tuple[str, type[Backbone]]:
    """The name and class of the backbone that reads a checkpoint."""
    if name is not None:
        backbone = load_backbone(name)
        if not checkpoint.is_read_by(name, backbone):
            models = " and ".join(backbone.libkge_models) or "no LibKGE model"
            raise CheckpointError(
                f"{checkpoint.path} is a {checkpoint.model}; backbone {name!r} reads {models}"
            )
        return name, backbone
    # A plugin called like the model comes first, so that usually no other is imported.
    model = plain_name(checkpoint.model)
    plugins = sorted(discover(), key=lambda plugin: plain_name(plugin.name) != model)
    readers, broken = [], []
    for plugin in plugins:
        try:
            backbone = plugin.load()
        except PluginError as error:
            broken.append(str(error))
            continue
        if checkpoint.is_read_by(plugin.name, backbone):
            readers.append((plugin.name, backbone))
            if plain_name(plugin.name) == model:
                break
    if len(readers) > 1:
        names = " and ".join(name for name, _ in readers)
        raise PluginError(
            f"{checkpoint.path} is a {checkpoint.model}, which backbones {names} read; choose one "
            "with --backbone"
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
