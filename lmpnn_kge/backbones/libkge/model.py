"""What LibKGE calls the parts of a model: what a backbone says of itself to be written."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class LibkgeModel:
    """A model in LibKGE's words: two lookup tables, options and the weights of its scorer."""

    name: str  # LibKGE's class
    section: str  # where LibKGE keeps its options, and the name of its NAME.yaml
    entities: Tensor  # [E, d]
    relations: Tensor  # [R, w], or [2R, w] if reciprocal
    projection: Tensor | None = None  # [v, w]: makes relations of width v of the table's rows
    options: Mapping[str, Any] = field(default_factory=dict)  # with dotted keys
    scorer: Mapping[str, Tensor] = field(default_factory=dict)

    def adding(
        self, options: Mapping[str, Any], scorer: Mapping[str, Tensor] | None = None
    ) -> LibkgeModel:
        """The same model with further options, of their types in LibKGE's files, and weights."""
        return dataclasses.replace(
            self, options={**self.options, **options}, scorer={**self.scorer, **(scorer or {})}
        )
