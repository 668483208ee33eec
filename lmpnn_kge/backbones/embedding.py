"""The data of a backbone: two tables of tensors, the names of their rows, a model's own fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmpnn_kge.errors import BackboneError, short

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from torch import Tensor
    from typing_extensions import Self

    from lmpnn_kge.graph.vocabulary import Vocabulary

    Ids = Tensor | Sequence[int] | npt.NDArray[np.int64] | int

#: Tables with more numbers than this are squared in parts.
MANY_NUMBERS = 2**28


@dataclass(frozen=True, eq=False, kw_only=True)
class Embedding:
    """Frozen tensors with the names of their rows; no gradient reaches them."""

    entities: Tensor  # [E, d]
    relations: Tensor  # [2R, w]: r and, R rows later, its inverse
    reciprocal: bool  # whether the inverse rows were trained rather than derived
    entity_ids: list[str] | None = None  # E names
    relation_ids: list[str] | None = None  # R names; inverses have none
    #: Bytes of the entity table that the device may hold. The table then stays in the host's
    #: memory or in its file, in any precision, and `rows` and `blocks` give parts of it.
    table_memory: int | None = None

    def __post_init__(self) -> None:
        for name, ids, rows in (
            ("entity", self.entity_ids, self.num_entities),
            ("relation", self.relation_ids, self.num_relations),
        ):
            if ids is not None and len(ids) != rows:
                raise BackboneError(f"{len(ids)} {name} ids do not match {rows} {name} rows")
        for name, tensor in self.tensors().items():
            object.__setattr__(self, name, tensor.detach())
        from lmpnn_kge.backbones.mapped import is_mapped

        if self.table_memory is None and is_mapped(self.entities):
            from lmpnn_kge.backbones.placing import table_limit

            object.__setattr__(self, "table_memory", table_limit(None, self.device))

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
            *([] if self.table_memory is None else ["table in blocks"]),
        ]

    @property
    def device(self) -> torch.device:
        """Where everything is, unless the entity table is too large."""
        return self.relations.device

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

    @property
    def table_note(self) -> str | None:
        """Where the entity table is, if the device does not hold it."""
        if self.table_memory is None:
            return None
        from lmpnn_kge.graph.memory import size_text

        size = size_text(self.entities.numel() * self.entities.element_size())
        held = f"{self.device.type} holds at most {size_text(self.table_memory)} of it"
        return f"the entity table of {size} is read in parts: {held}"

    def rows(self, ids: Ids) -> Tensor:
        """Rows of the entity table, for ids [...] -> [..., d]."""
        import torch

        from lmpnn_kge.backbones.kernels import take_rows

        if self.table_memory is None:
            wanted = torch.as_tensor(ids, dtype=torch.int64, device=self.device)
            return take_rows(self.entities, wanted)
        from lmpnn_kge.backbones.placing import fetch
        from lmpnn_kge.device import move

        wanted = torch.as_tensor(ids, dtype=torch.int64, device="cpu")
        distinct, places = wanted.unique(return_inverse=True)
        return move(take_rows(fetch(self.entities, distinct), places), self.device)

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """The entity table in parts that the device can hold: which rows, and the rows [n, d]."""
        if self.table_memory is None:
            yield slice(0, self.num_entities), self.entities
            return
        from lmpnn_kge.backbones.placing import stream

        yield from stream(self.entities, self.block_rows, self.device)

    @property
    def block_rows(self) -> int:
        """The number of rows of all blocks but the last, which may have fewer."""
        from lmpnn_kge.backbones.placing import block_rows

        if self.table_memory is None:
            return self.num_entities
        return block_rows(self.entities, self.device, self.table_memory)

    def typical_number(self) -> float:
        """The root of the mean square of the entity table."""
        import torch

        from lmpnn_kge.backbones.mapped import spans

        table = self.entities
        if table.numel() <= MANY_NUMBERS:
            return table.float().square().mean().sqrt().item()
        total = 0.0
        for span in spans(table, MANY_NUMBERS // self.dim // 16):
            total += table[span].float().square().sum(dtype=torch.float64).item()
        return (total / table.numel()) ** 0.5

    def placed(self, device: torch.device, table_memory: str | None = None) -> Self:
        """Copy to a device, but leave the entity table where it is if the device may not hold it.

        table_memory is a size such as 8GB; by default it is half of the device's memory.
        """
        from lmpnn_kge.backbones.placing import fits, table_limit

        limit = table_limit(table_memory, device)
        if fits(self.entities, limit):
            return self.to(device)
        return dataclasses.replace(self, **self._moved(device, None), table_memory=limit)

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Self:
        """Copy to another device or to another floating point type, with all of the tables."""
        import torch

        moved = self._moved(device, dtype)
        if self.table_memory is None:
            moved["entities"] = self.entities.to(device=device, dtype=dtype)
        else:
            from lmpnn_kge.backbones.placing import loaded

            where = self.device if device is None else torch.device(device)
            moved["entities"] = loaded(self.entities, where, dtype or self.relations.dtype)
        return dataclasses.replace(self, **moved, table_memory=None)

    def _moved(
        self, device: torch.device | str | None, dtype: torch.dtype | None
    ) -> dict[str, Any]:
        """All tensors but the entity table, on another device or in another type."""
        return {
            name: tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else None)
            for name, tensor in self.tensors().items()
            if name != "entities"
        }
