"""The content of a checkpoint file in any format: the value that loaders return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from lmpnn_kge.backbones.mapped import is_mapped
from lmpnn_kge.errors import CheckpointError, LmpnnError, short
from lmpnn_kge.graph.vocabulary import name_rows


@dataclass(frozen=True)
class Validation:
    """A metric that was recorded during training."""

    metric: str
    value: float
    epoch: int | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Checkpoint:
    """The tables of a model with the names of their rows, and facts about its training."""

    path: Path
    kind: str  # what kind of file it is, such as "LibKGE package"
    model: str  # the name of the backbone that opens it
    reciprocal: bool
    entities: Tensor  # [E, d]
    relations: Tensor  # [R, w], or [2R, w] if reciprocal
    fields: Mapping[str, Any] = field(default_factory=dict)  # the backbone's own fields
    entity_ids: list[str] | None = None
    relation_ids: list[str] | None = None
    dataset: str | None = None  # the name of the graph it was trained on
    epoch: int | None = None
    validation: Validation | None = None
    notes: tuple[str, ...] = ()  # on how it was read

    def __post_init__(self) -> None:
        for name, type_, words in (
            ("kind", str, "a string"),
            ("model", str, "a string"),
            ("reciprocal", bool, "true or false"),
            ("dataset", str | None, "a string or None"),
            ("epoch", int | None, "a whole number or None"),
        ):
            if not isinstance(value := getattr(self, name), type_):
                raise self.error(f"{name} must be {words}, not {short(value)}")
        for name in ("entities", "relations"):
            table = getattr(self, name)
            if not (isinstance(table, Tensor) and table.dim() == 2 and table.is_floating_point()):
                raise self.error(f"{name} must be a matrix of floating point numbers")
            stays = name == "entities" and is_mapped(table)  # its rows are converted when read
            object.__setattr__(self, name, table if stays else single(table))
        for table_name, rows in (("entity", len(self.entities)), ("relation", self.num_relations)):
            ids = self._checked_ids(table_name, rows, getattr(self, f"{table_name}_ids"))
            object.__setattr__(self, f"{table_name}_ids", ids)

    def _checked_ids(self, table_name: str, rows: int, ids: Any) -> list[str] | None:
        if ids is None:
            return None
        if not isinstance(ids, list):
            raise self.error(f"{table_name} ids must be a list, not {short(ids)}")
        if len(ids) != rows:
            count = f"{len(ids)} {table_name} ids"
            raise self.error(f"{count} do not match the {rows} {table_name} rows of its model")
        try:
            return name_rows(ids)
        except ValueError as error:
            raise self.error(f"{table_name} {error}") from error

    def __repr__(self) -> str:
        facts = [
            f"{str(self.path)!r}",
            self.kind,
            f"model {self.model}",
            f"{len(self.entities):,} entities",
            f"{self.num_relations:,} relations",
            f"width {self.entities.shape[1]}",
            "reciprocal" if self.reciprocal else "plain",
        ]
        return f"{type(self).__name__}({short(', '.join(facts), 500)})"

    @property
    def num_relations(self) -> int:
        """R, the number of relations without their inverses."""
        return len(self.relations) // 2 if self.reciprocal else len(self.relations)

    def fits(self, name: str, backbone: Any) -> bool:
        """Whether this backbone class, installed under this name, opens the file."""
        return name == self.model

    def build(self, backbone: Any) -> Any:
        """Make an instance of a backbone class from the file."""
        # A class need not check its fields, so any exception here means that the file is wrong.
        try:
            built = backbone.from_tensors(
                self.entities,
                self.relations,
                reciprocal=self.reciprocal,
                entity_ids=self.entity_ids,
                relation_ids=self.relation_ids,
                **{name: single(value) for name, value in self.fields.items()},
            )
            row = built.rows([0])
            built.score(row, [0], row)
        except LmpnnError:
            raise
        except Exception as error:
            reason = short(" ".join(f"{type(error).__name__}: {error}".split()))
            raise self.error(f"cannot make a {backbone.__name__} from it ({reason})") from error
        return built

    def error(self, reason: str) -> CheckpointError:
        return CheckpointError(f"{self.path}: {reason}")


def single(value: Any) -> Any:
    """Convert a tensor to single precision, which all backbones use, in memory.

    Other values are returned as they are.
    """
    if isinstance(value, Tensor) and value.is_floating_point():
        value = value.detach().float().contiguous()
        return value.clone() if is_mapped(value) else value
    return value


def plain_name(model: str) -> str:
    """Remove differences in spelling from a model's name: `complex` for `ComplEx`."""
    return model.replace("_", "").lower()
