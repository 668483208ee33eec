"""Backbones written as LibKGE packages; LibKGE need not be installed."""

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
from lmpnn_kge.backbones.open import as_backbone
from lmpnn_kge.errors import BackboneError
from lmpnn_kge.files import write_file
from lmpnn_kge.graph.vocabulary import name_rows

#: LibKGE's model that gives another one a second set of relations, and the name of its class.
RECIPROCAL, RECIPROCAL_CLASS = RECIPROCAL_MODELS[0], "ReciprocalRelationsModel"


def write_checkpoint(
    backbone: Backbone | str | Path,
    file: str | Path,
    *,
    dataset: str,
    epoch: int = 0,
    validations: Sequence[Validation] = (),
) -> None:
    """Write a backbone, or that of a checkpoint file, as a LibKGE package.

    dataset is the name of its graph; LibKGE looks for it in `data/NAME`. validations are the
    metrics measured during training, in order; the last one determines the metric of the file.
    """
    content = _package(as_backbone(backbone), dataset, epoch, validations)
    stream = io.BytesIO()
    torch.save(content, stream, pickle_module=_Pickle, pickle_protocol=2)
    write_file(stream.getvalue(), Path(file))


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
            "meta": {key: _names(key, ids) for key, ids in names.items() if ids is not None},
        },
    }


def _options(model: LibkgeModel, reciprocal: bool) -> dict[str, Any]:
    """Collect the options that LibKGE needs to rebuild the model; all others are its defaults."""
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
    else:  # the projection embedder is LibKGE's default for such a model
        sizes["relation_embedder.base_embedder.dim"] = sizes["relation_embedder.dim"]
        sizes["relation_embedder.dim"] = len(model.projection)
    prefix = section
    if reciprocal:
        prefix = f"{RECIPROCAL}.base_model"
        options |= {
            "import": [RECIPROCAL, section],
            "model": RECIPROCAL,
            f"{RECIPROCAL}.class_name": RECIPROCAL_CLASS,
            f"{prefix}.type": section,
        }
    own = {**sizes, **model.options}
    return options | {f"{prefix}.{name}": value for name, value in own.items()}


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
    """Convert a tensor as LibKGE stores it: in single precision, with a storage of its own size."""
    if tensor.is_floating_point():
        tensor = tensor.float()
    tensor = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    if not tensor.isfinite().all():
        raise BackboneError(
            f"{name} of {model.name} has NaN, infinite or too large numbers; nothing was written"
        )
    return tensor


def _names(key: str, ids: list[str]) -> list[str]:
    try:
        return [str(id_) for id_ in name_rows(list(ids))]
    except ValueError as error:
        raise BackboneError(f"{key}: {error}") from error


def _trace_entry(validation: Validation) -> dict[str, Any]:
    """Convert a validation to an entry of LibKGE's trace."""
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
    """Stand-in for `kge.config.Config`, which pickles as these attributes."""

    options: dict[str, Any]
    default_options: dict[str, Any] = field(default_factory=dict)
    folder: str = "."
    log_folder: str | None = None
    log_prefix: str | None = None


_PurePickler: Any = pickle._Pickler


class _Pickler(pickle._Pickler):
    """Pickler that writes our `Config` under the name of LibKGE's.

    Python's faster pickler would import that name to check that it is the same class. This one lets
    us write any name, so that it does not matter whether LibKGE is installed.
    """

    def save_global(self: Any, obj: Any, name: str | None = None) -> None:
        if obj is Config:
            self.write(pickle.GLOBAL + b"kge.config\nConfig\n")
            self.memoize(obj)
        else:
            _PurePickler.save_global(self, obj, name)


class _Pickle:
    """The part of a pickle module that torch uses."""

    Pickler = _Pickler
