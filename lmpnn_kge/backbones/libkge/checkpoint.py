"""LibKGE's checkpoints of any age and layout, as one value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmpnn_kge.backbones.checkpoint import Checkpoint, Validation, plain_name, single
from lmpnn_kge.backbones.libkge.options import get, look_up
from lmpnn_kge.backbones.libkge.safe_load import Config, Saved, safe_open
from lmpnn_kge.backbones.libkge.stored import StoredTensor
from lmpnn_kge.backbones.mapped import blocks
from lmpnn_kge.errors import short

#: LibKGE's models that give another one a second set of relations; the second name is from 2019.
RECIPROCAL_MODELS = ("reciprocal_relations_model", "inverse_relations_model")

#: The types of file that LibKGE writes, and our words for them.
FILE_TYPES = {"train": "training checkpoint", "package": "package"}

#: Limits on hostile files: depth of nested projections, and how many times more numbers than the
#: whole model has a projection may make.
MAX_PROJECTIONS = 8
MAX_PROJECTED = 16


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LibkgeCheckpoint(Checkpoint):
    """A LibKGE checkpoint, independent of its layout; model is LibKGE's class name."""

    model_key: str  # the section of the options that belongs to the model
    options: Mapping[str, Any]
    state: Mapping[str, Tensor]  # as stored, under LibKGE's current names

    def fits(self, name: str, backbone: Any) -> bool:
        return plain_name(self.model) in map(plain_name, backbone.libkge_models)

    def build(self, backbone: Any) -> Any:
        return backbone.from_libkge(self)

    def option(self, name: str) -> Any:
        """Look up an option of the model, inherited by LibKGE's rules; None if it is not set."""
        try:
            return look_up(self.options, f"{self.model_key}.{name}")
        except ValueError as error:
            raise self.error(str(error)) from error

    def number(self, name: str, default: float, *, above: float = 0) -> float:
        """Look up a numeric option of the model, which must be finite and larger than a bound."""
        value = self.option(name)
        if value is None:
            return default
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not above < number < math.inf:
            raise self.error(f"option {name} must be a number above {above}, not {short(value)}")
        return number

    def integer(self, name: str, default: int, *, above: int = 0) -> int:
        """Look up an option of the model that must be a whole number larger than a bound."""
        number = self.number(name, default, above=above)
        if number != int(number):
            raise self.error(f"option {name} must be a whole number, not {number}")
        return int(number)

    def has_scorer(self, name: str) -> bool:
        return f"_scorer.{name}" in self.state

    def scorer(self, name: str, *shape: int | None) -> Tensor:
        """Get a tensor of the model's scorer; None in its shape means any size."""
        try:
            return _tensor(self.state, f"_scorer.{name}", *shape)
        except ValueError as error:
            raise self.error(str(error)) from error

    def projected_relations(self) -> tuple[Tensor, Tensor]:
        """Get the rows [R, b] from which relations are projected, and the projection [w, b]."""
        try:
            rows = _embeddings(self.state, "_relation_embedder.base_embedder")
            name = "_relation_embedder.projection.weight"
            return single(rows), _tensor(self.state, name, None, rows.shape[1])
        except ValueError as error:
            raise self.error(str(error)) from error


def read_libkge(file: str | Path) -> LibkgeCheckpoint:
    """Read a training checkpoint or a package; CheckpointError if that is impossible."""
    path = Path(file)
    with safe_open(path) as saved:
        return _parse(path, saved)


def _parse(path: Path, saved: Saved) -> LibkgeCheckpoint:
    raw = saved.content
    if not isinstance(raw, dict):
        kind = "Tensor" if isinstance(raw, StoredTensor) else type(raw).__name__
        raise ValueError(f"not a LibKGE checkpoint, but a saved {kind}")
    file_type = raw.get("type", "train")
    if not isinstance(file_type, str):
        raise ValueError("not a LibKGE checkpoint: its type is not a string")
    if file_type in ("search", "search_grash"):
        raise ValueError(
            "a LibKGE search checkpoint, which has trials but no model; use a trial's checkpoint"
        )
    if file_type not in FILE_TYPES or not isinstance(raw.get("config"), Config):
        raise ValueError("not a LibKGE checkpoint: its type or its configuration is missing")
    options = raw["config"].options
    if not isinstance(options, dict):
        raise ValueError("its configuration has no options")
    key, reciprocal = _model_key(options)
    state = _state(raw, saved)
    entities = _embeddings(state, "_entity_embedder")
    relations = _embeddings(state, "_relation_embedder")
    names = (look_up(options, f"{key}.{name}") for name in ("class_name", "type"))
    model = next((name for name in names if name is not None), key)
    if not isinstance(model, str):
        raise ValueError(f"the name of its model is {short(model)}")
    dataset = get(options, "dataset.name")
    epoch = raw.get("epoch") if type(raw.get("epoch")) is int else None
    return LibkgeCheckpoint(
        path=path,
        kind=f"LibKGE {FILE_TYPES[file_type]}",
        model=model,
        model_key=key,
        reciprocal=reciprocal,
        options=options,
        state=state,
        entities=entities,
        relations=relations,
        entity_ids=get(raw, "dataset.meta.entity_ids"),
        relation_ids=get(raw, "dataset.meta.relation_ids"),
        dataset=dataset if isinstance(dataset, str) else None,
        epoch=epoch,
        validation=_validation(options, raw.get("valid_trace"), epoch),
        notes=tuple(saved.file.notes),
    )


def _model_key(options: Mapping[str, Any]) -> tuple[str, bool]:
    """Find the section of the model's options, and whether the model is reciprocal."""
    key = get(options, "model")
    if not isinstance(key, str):
        raise ValueError("its configuration does not name a model")
    if key not in RECIPROCAL_MODELS:
        return key, False
    base = f"{key}.base_model"
    if not isinstance(get(options, f"{base}.type"), str):
        raise ValueError(f"its configuration lacks {base}.type")
    return base, True


def _state(raw: Mapping[str, Any], saved: Saved) -> dict[str, Tensor]:
    """Read the model's tensors, and no others, under LibKGE's current names."""
    model = raw.get("model")
    stored = model[0] if isinstance(model, tuple) and model else raw.get("model_state_dict")
    if not isinstance(stored, dict):
        raise ValueError("it has no model")
    state: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        if not isinstance(name, str) or not isinstance(tensor, StoredTensor):
            raise ValueError(f"its model has {short(name)}, which is not a named tensor")
        # A reciprocal model lists the tensors of its base model a second time.
        name = name.removeprefix("_base_model.")
        if name.endswith(".embeddings.weight"):  # before May 2020
            name = f"{name.removesuffix('embeddings.weight')}_embeddings.weight"
        try:
            state[name] = saved.load(tensor)
        except ValueError as error:
            raise ValueError(f"{short(name)}: {error}") from error
    return state


def _embeddings(state: Mapping[str, Tensor], name: str, depth: int = 0) -> Tensor:
    """Get the table of a lookup embedder, or compute the table of a projection embedder."""
    projection = f"{name}.projection.weight"
    if projection not in state or depth > MAX_PROJECTIONS:
        return _checked(state, f"{name}._embeddings.weight", None, None)
    base = _embeddings(state, f"{name}.base_embedder", depth + 1)
    weight = _tensor(state, projection, None, base.shape[1])
    if len(base) * len(weight) > MAX_PROJECTED * sum(t.numel() for t in state.values()):
        raise ValueError(f"{projection} makes {len(base)} × {len(weight)} numbers from a few")
    return torch.cat([part.float() @ weight.T for part in blocks(base)])


def _tensor(state: Mapping[str, Tensor], name: str, *shape: int | None) -> Tensor:
    tensor: Tensor = single(_checked(state, name, *shape))
    return tensor


def _checked(state: Mapping[str, Tensor], name: str, *shape: int | None) -> Tensor:
    """A tensor as it is stored; ValueError if it is not of this shape, None being any size."""
    if name not in state:
        raise ValueError(f"its model has no tensor {name}")
    tensor = state[name]
    actual = list(tensor.shape)
    if len(actual) != len(shape) or any(
        expected not in (None, size) for expected, size in zip(shape, actual, strict=True)
    ):
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"tensor {name} must have shape [{expected}], not {actual}")
    if not tensor.is_floating_point():
        raise ValueError(f"tensor {name} must have floating point numbers, not {tensor.dtype}")
    return tensor


def _validation(options: Mapping[str, Any], trace: Any, epoch: int | None) -> Validation | None:
    """Get the validation metric at the checkpoint's epoch, or else the last recorded one."""
    metric = get(options, "valid.metric")
    if not isinstance(metric, str) or not isinstance(trace, list):
        return None
    recorded = []
    for entry in trace:
        value, at = get(entry, metric), get(entry, "epoch")
        if isinstance(value, float) and math.isfinite(value):
            recorded.append(Validation(metric, value, at if type(at) is int else None))
    here = (validation for validation in recorded if validation.epoch == epoch)
    return next(here, recorded[-1] if recorded else None)
