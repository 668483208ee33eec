"""What a file with an embedding says, in whichever format: what loaders return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from lmpnn_kge.errors import CheckpointError, LmpnnError, short
from lmpnn_kge.graph.formats.libkge import name_rows


@dataclass(frozen=True)
class Validation:
    """A metric that was recorded in the file."""

    metric: str
    value: float
    epoch: int | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """The tables of a model with their names, and what the file remembers of its training."""

    path: Path
    kind: str  # what the file is, such as "LibKGE package"
    model: str  # the name of the backbone that reads it
    reciprocal: bool
    entities: Tensor  # [E, d]
    relations: Tensor  # [R, w], or [2R, w] if reciprocal
    fields: Mapping[str, Any] = field(default_factory=dict)  # further fields of the backbone
    entity_ids: list[str] | None = None
    relation_ids: list[str] | None = None
    dataset: str | None = None  # the name of the dataset it was trained on
    epoch: int | None = None
    validation: Validation | None = None

    def __post_init__(self) -> None:
        for name, type_ in (("kind", str), ("model", str), ("reciprocal", bool),
                            ("dataset", str | None), ("epoch", int | None)):  # fmt: skip
            if not isinstance(value := getattr(self, name), type_):
                raise self.error(f"{name} cannot be {short(value)}")
        for name in ("entities", "relations"):
            table = getattr(self, name)
            if not (isinstance(table, Tensor) and table.dim() == 2 and table.is_floating_point()):
                raise self.error(f"{name} must be a matrix of floating point numbers")
            object.__setattr__(self, name, _single(table))
        for kind, rows in (("entity", len(self.entities)), ("relation", self.num_relations)):
            ids = self._named(kind, rows, getattr(self, f"{kind}_ids"))
            object.__setattr__(self, f"{kind}_ids", ids)

    def _named(self, kind: str, rows: int, ids: Any) -> list[str] | None:
        if ids is None:
            return None
        if not isinstance(ids, list) or len(ids) != rows:
            found = len(ids) if isinstance(ids, list) else "no list of"
            raise self.error(f"{found} {kind} ids do not match the {rows} {kind} rows of its model")
        try:
            return name_rows(ids)
        except ValueError as error:
            raise self.error(f"{kind} {error}") from error

    @property
    def num_relations(self) -> int:
        """R: without inverses."""
        return len(self.relations) // 2 if self.reciprocal else len(self.relations)

    def is_read_by(self, name: str, backbone: Any) -> bool:
        """Whether a backbone, a class of this name, is that of the file."""
        return name == self.model

    def build(self, backbone: Any) -> Any:
        """The embedding itself, of a backbone's class."""
        # What a class trips over in fields that it does not check is the file's fault.
        try:
            built = backbone.from_tensors(
                self.entities,
                self.relations,
                reciprocal=self.reciprocal,
                entity_ids=self.entity_ids,
                relation_ids=self.relation_ids,
                **{name: _single(value) for name, value in self.fields.items()},
            )
            built.score(built.entities[:1], [0], built.entities[:1])
        except LmpnnError:
            raise
        except Exception as error:
            reason = short(" ".join(f"{type(error).__name__}: {error}".split()))
            raise self.error(f"no {backbone.__name__} can be made of it ({reason})") from error
        return built

    def error(self, reason: str) -> CheckpointError:
        return CheckpointError(f"{self.path}: {reason}")


def _single(value: Any) -> Any:
    """A tensor in single precision, which is that of all backbones; anything else as it is."""
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.detach().float().contiguous()
    return value


def plain_name(model: str) -> str:
    """A model's name without the differences in spelling: `complex` for `ComplEx`."""
    return model.replace("_", "").lower()
