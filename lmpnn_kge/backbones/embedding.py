"""The data of a backbone: two tables of tensors, the names of their rows, a model's own fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmpnn_kge.errors import BackboneError, short

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from typing_extensions import Self

    from lmpnn_kge.graph.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False, kw_only=True)
class Embedding:
    """Frozen tensors with the names of their rows; no gradient reaches them."""

    entities: Tensor  # [E, d]
    relations: Tensor  # [2R, w]: r and, R rows later, its inverse
    reciprocal: bool  # whether the inverse rows were trained rather than derived
    entity_ids: list[str] | None = None  # E names
    relation_ids: list[str] | None = None  # R names; inverses have none

    def __post_init__(self) -> None:
        for name, ids, rows in (
            ("entity", self.entity_ids, self.num_entities),
            ("relation", self.relation_ids, self.num_relations),
        ):
            if ids is not None and len(ids) != rows:
                raise BackboneError(f"{len(ids)} {name} ids do not match {rows} {name} rows")
        for name, tensor in self.tensors().items():
            object.__setattr__(self, name, tensor.detach())

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Without this, @dataclass would give every subclass a repr that prints its tensors.
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        own = [(name, v) for name, v in self.own_fields().items() if name not in self.tensors()]
        facts = [*self._facts(), *(f"{name}={short(repr(value), 40)}" for name, value in own)]
        return f"{type(self).__name__}({', '.join(facts)})"

    def _facts(self) -> list[str]:
        """Sizes and form in a few words each, for `repr`."""
        return [
            f"{self.num_entities:,} entities",
            f"{self.num_relations:,} relations",
            f"width {self.dim}",
            "reciprocal" if self.reciprocal else "plain",
        ]

    @property
    def num_entities(self) -> int:
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """R, the number of relations without their inverses."""
        return len(self.relations) // 2

    @property
    def dim(self) -> int:
        return self.entities.shape[1]

    @property
    def has_names(self) -> bool:
        return self.entity_ids is not None and self.relation_ids is not None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names of the rows; BackboneError if they are not known."""
        from lmpnn_kge.graph.vocabulary import Vocabulary

        if self.entity_ids is None or self.relation_ids is None:
            raise BackboneError(
                "its entities and relations have no names: open the checkpoint together with its "
                "dataset (--dataset DIR)"
            )
        return Vocabulary(self.entity_ids, self.relation_ids)

    def tensors(self) -> dict[str, Tensor]:
        """The two tables and the model's own tensors, by the names of their fields."""
        import torch

        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}

    def own_fields(self) -> dict[str, Any]:
        """Values of the fields that a model adds to these, by their names."""
        common = {field.name for field in dataclasses.fields(Embedding)}
        names = [field.name for field in dataclasses.fields(self) if field.name not in common]
        return {name: getattr(self, name) for name in names}

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Self:
        """Copy with other tensors, which may require gradients: used in training.

        Only fields are copied. Values that were cached from the previous tensors are not.
        """
        other = object.__new__(type(self))
        for field in dataclasses.fields(self):
            value = tensors[field.name] if field.name in tensors else getattr(self, field.name)
            object.__setattr__(other, field.name, value)
        return other

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Self:
        """Copy to another device or to another floating point type."""
        moved: dict[str, Any] = {
            name: tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else None)
            for name, tensor in self.tensors().items()
        }
        return dataclasses.replace(self, **moved)
