"""Backbones as LibKGE's packages, written with no LibKGE installed."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmpnn_kge.backbones.checkpoint import Validation
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.libkge.checkpoint import RECIPROCAL_MODELS
from lmpnn_kge.backbones.libkge.model import LibkgeModel
from lmpnn_kge.backbones.libkge.options import nest
from lmpnn_kge.errors import BackboneError
from lmpnn_kge.files import write_whole
from lmpnn_kge.graph.formats.libkge import name_rows

#: LibKGE's model that gives another one a second set of relations, and its class.
RECIPROCAL, RECIPROCAL_CLASS = RECIPROCAL_MODELS[0], "ReciprocalRelationsModel"


def write_checkpoint(
    file: str | Path,
    backbone: Backbone,
    *,
    dataset: str,
    epoch: int = 0,
    validations: Sequence[Validation] = (),
) -> None:
    """Write a backbone as a LibKGE package, whole or not at all.

    dataset is the name of its graph, where LibKGE looks for it: in `data/NAME`. validations are
    what was measured during training, in order; the metric of the last one is the file's.
    """
    content = _package(backbone, dataset, epoch, validations)
    stream = io.BytesIO()
    torch.save(content, stream, pickle_module=_Pickle, pickle_protocol=2)
    write_whole(Path(file), stream.getvalue())


def _package(
    backbone: Backbone, dataset: str, epoch: int, validations: Sequence[Validation]
) -> dict[str, Any]:
    model = backbone.to_libkge()
    options = _options(model, backbone.reciprocal) | {
        "dataset.name": str(dataset),
        "dataset.num_entities": backbone.num_entities,
        "dataset.num_relations": backbone.num_relations,
    }
    if validations:
        options["valid.metric"] = str(validations[-1].metric)
    names = {"entity_ids": backbone.entity_ids, "relation_ids": backbone.relation_ids}
    return {
        "type": "package",
        "config": Config(nest(options)),
        "model": (_state(model, backbone.reciprocal), {}),
        "epoch": int(epoch),
        "valid_trace": [_trace_entry(validation) for validation in validations],
        "job_id": "lmpnn-kge",
        "dataset": {
            "num_entities": backbone.num_entities,
            "num_relations": backbone.num_relations,
            "meta": {kind: _names(kind, ids) for kind, ids in names.items() if ids is not None},
        },
    }


def _options(model: LibkgeModel, reciprocal: bool) -> dict[str, Any]:
    """All that LibKGE needs to make the model again; the rest are its defaults."""
    section = model.section
    options = {
        "job.device": "cpu",
        "import": [section],
        "model": section,
        f"{section}.class_name": model.name,
        f"{section}.entity_embedder.type": "lookup_embedder",
    }
    sizes = {
        "entity_embedder.dim": model.entities.shape[1],
        "relation_embedder.dim": model.relations.shape[1],
    }
    if model.projection is None:
        options[f"{section}.relation_embedder.type"] = "lookup_embedder"
    else:  # by the embedder that is LibKGE's default for the model
        sizes["relation_embedder.base_embedder.dim"] = sizes["relation_embedder.dim"]
        sizes["relation_embedder.dim"] = len(model.projection)
    place = section
    if reciprocal:
        place = f"{RECIPROCAL}.base_model"
        options |= {
            "import": [RECIPROCAL, section],
            "model": RECIPROCAL,
            f"{RECIPROCAL}.class_name": RECIPROCAL_CLASS,
            f"{place}.type": section,
        }
    own = {**sizes, **model.options}
    return options | {f"{place}.{name}": value for name, value in own.items()}


def _state(model: LibkgeModel, reciprocal: bool) -> OrderedDict[str, Tensor]:
    tensors = {"_entity_embedder._embeddings.weight": model.entities}
    if model.projection is None:
        tensors["_relation_embedder._embeddings.weight"] = model.relations
    else:
        tensors["_relation_embedder.base_embedder._embeddings.weight"] = model.relations
        tensors["_relation_embedder.projection.weight"] = model.projection
    tensors |= {f"_scorer.{name}": tensor for name, tensor in model.scorer.items()}
    state = OrderedDict((name, _stored(model, name, t)) for name, t in tensors.items())
    if reciprocal:  # the base model lists the same tensors a second time
        state.update([(f"_base_model.{name}", tensor) for name, tensor in state.items()])
    return state


def _stored(model: LibkgeModel, name: str, tensor: Tensor) -> Tensor:
    """A tensor as LibKGE keeps it: single precision, and no more in its storage than it shows."""
    if tensor.is_floating_point():
        tensor = tensor.float()
    tensor = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    if not tensor.isfinite().all():
        raise BackboneError(
            f"{name} of {model.name} holds NaN, infinite or too large numbers; nothing was written"
        )
    return tensor


def _names(kind: str, ids: list[str]) -> list[str]:
    try:
        return [str(id_) for id_ in name_rows(list(ids))]
    except ValueError as error:
        raise BackboneError(f"{kind}: {error}") from error


def _trace_entry(validation: Validation) -> dict[str, Any]:
    """A validation as LibKGE records it."""
    return {
        "job": "eval",
        "type": "entity_ranking",
        "split": "valid",
        "scope": "epoch",
        "event": "eval_completed",
        "epoch": validation.epoch,
        str(validation.metric): float(validation.value),
    }


@dataclass
class Config:
    """Stands in for `kge.config.Config`, which pickles as these attributes."""

    options: dict[str, Any]
    default_options: dict[str, Any] = field(default_factory=dict)
    folder: str = "."
    log_folder: str | None = None
    log_prefix: str | None = None


_PurePickler: Any = pickle._Pickler


class _Pickler(pickle._Pickler):
    """Writes `Config` under LibKGE's name.

    Python's faster pickler would import that name to see whether it is the same class; this one
    can be told, and neither needs LibKGE nor minds another thread or an installed one.
    """

    def save_global(self: Any, obj: Any, name: str | None = None) -> None:
        if obj is Config:
            self.write(pickle.GLOBAL + b"kge.config\nConfig\n")
            self.memoize(obj)
        else:
            _PurePickler.save_global(self, obj, name)


class _Pickle:
    """What torch asks of a pickle module."""

    Pickler = _Pickler
