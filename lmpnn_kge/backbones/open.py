"""Opening a file as a backbone: read the checkpoint, find its backbone, join the names."""

from __future__ import annotations

import dataclasses
import os
import warnings
from pathlib import Path

from lmpnn_kge.backbones.checkpoint import Checkpoint, plain_name
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.discovery import LOADERS, Plugin, backbone_class, discover
from lmpnn_kge.errors import BackboneError, CheckpointError, DatasetError, PluginError, examples
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph


def open_backbone(
    file: str | Path,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    *,
    table_memory: str | None = None,
) -> Backbone:
    """Open a checkpoint in any format for which a loader is installed.

    backbone is the name of a backbone plugin; by default the checkpoint determines it. dataset is
    the folder of the graph. It gives names to the rows of a checkpoint without names, such as
    LibKGE's training checkpoints; the names of other checkpoints must agree with it. table_memory,
    such as 8GB, limits the memory for the entity table, by default to half of all; a larger one
    stays in its file.
    """
    checkpoint = read_checkpoint(file)
    _, model = find_backbone(checkpoint, backbone)
    graph = None if dataset is None else KnowledgeGraph.open(dataset)
    opened, notes = build(checkpoint, model, graph)
    for note in notes:
        warnings.warn(f"{file}: {note}", stacklevel=2)
    return opened.placed(opened.device, table_memory)


def as_backbone(backbone: Backbone | str | Path) -> Backbone:
    """A backbone as it is, or that of a checkpoint file."""
    return open_backbone(backbone) if isinstance(backbone, str | Path) else backbone


def read_checkpoint(file: str | Path) -> Checkpoint:
    """Read a file with the installed loader that knows its format.

    Every loader is asked. If two claim the file, PluginError names both; if none does,
    CheckpointError has the reasons.
    """
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
    """Find the backbone that opens a checkpoint; returns its name and class."""
    if name is not None:
        backbone = backbone_class(name)
        if not checkpoint.fits(name, backbone):
            models = " and ".join(backbone.libkge_models) or name
            raise CheckpointError(
                f"{checkpoint.path} is a {checkpoint.model}, but backbone {name!r} opens {models}; "
                "choose another backbone or checkpoint"
            )
        return name, backbone
    # Try the plugin with the model's name first: usually no other has to be imported.
    model_name = plain_name(checkpoint.model)
    plugins = sorted(discover(), key=lambda plugin: plain_name(plugin.name) != model_name)
    fitting, broken = [], []
    for plugin in plugins:
        try:
            backbone = plugin.load()
        except PluginError as error:
            broken.append(str(error))
            continue
        if checkpoint.fits(plugin.name, backbone):
            fitting.append((plugin.name, backbone))
            if plain_name(plugin.name) == model_name:
                break
    if len(fitting) > 1:
        names = " and ".join(name for name, _ in fitting)
        raise PluginError(
            f"{checkpoint.path} is a {checkpoint.model}, which backbones {names} open; choose one "
            "with --backbone"
        )
    if not fitting:
        also = "".join(f"; {reason}" for reason in dict.fromkeys(broken))
        raise PluginError(
            f"{checkpoint.path} is a {checkpoint.model}, which no installed backbone opens; "
            f"install a plugin for it{also}"
        )
    return fitting[0]


def build(
    checkpoint: Checkpoint, model: type[Backbone], graph: KnowledgeGraph | None = None
) -> tuple[Backbone, list[str]]:
    """Make the backbone; with a graph, name its rows and return notes on what did not match."""
    try:
        backbone: Backbone = checkpoint.build(model)
    except BackboneError as error:
        raise CheckpointError(f"{checkpoint.path}: {error}") from error
    if graph is None:
        return backbone, [*checkpoint.notes]
    names, folder = graph.vocabulary, graph.folder
    entity_ids, entity_note = _join(
        "entity", backbone.entity_ids, backbone.num_entities, names.entity_ids, folder
    )
    relation_ids, relation_note = _join(
        "relation", backbone.relation_ids, backbone.num_relations, names.relation_ids, folder
    )
    named = dataclasses.replace(backbone, entity_ids=entity_ids, relation_ids=relation_ids)
    return named, [*checkpoint.notes, *entity_note, *relation_note]


def _join(
    role: str, ids: list[str] | None, rows: int, graph_ids: list[str], folder: Path
) -> tuple[list[str], list[str]]:
    """The ids of a checkpoint's rows, and notes: names join by name, without exception.

    A checkpoint without ids takes those of the graph, if there is one for each row. A checkpoint
    with ids must know every id of the graph.
    """
    if ids is None:
        if len(graph_ids) != rows:
            raise DatasetError(
                f"{folder} has {len(graph_ids)} {role} ids, but the checkpoint has {rows} rows: "
                "it was trained on another dataset"
            )
        return graph_ids, []
    if unknown := set(graph_ids).difference(ids):
        raise DatasetError(
            f"{folder} has {role} ids that the checkpoint lacks: {examples(unknown)}; was it "
            "trained on another version of the graph?"
        )
    extra = set(ids).difference(graph_ids)
    note = f"{role} ids of the checkpoint that {folder} lacks: {examples(extra)}"
    return ids, [note] if extra else []
