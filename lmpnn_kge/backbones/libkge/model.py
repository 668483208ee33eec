"""A backbone in LibKGE's terms, as it is written to a LibKGE package."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class LibkgeModel:
    """A model in LibKGE's terms: two lookup tables, options and the weights of its scorer."""

    name: str  # of LibKGE's class
    section: str  # of LibKGE's options, and the name of its NAME.yaml
    entities: Tensor  # [E, d]
    relations: Tensor  # [R, w], or [2R, w] if reciprocal
    projection: Tensor | None = None  # [v, w]: projects rows of width w to width v
    options: Mapping[str, Any] = field(default_factory=dict)  # with dotted keys
    scorer: Mapping[str, Tensor] = field(default_factory=dict)

    def adding(
        self, options: Mapping[str, Any], scorer: Mapping[str, Tensor] | None = None
    ) -> LibkgeModel:
        """Copy the model with additional options, typed as in LibKGE's files, and weights."""
        return dataclasses.replace(
            self, options={**self.options, **options}, scorer={**self.scorer, **(scorer or {})}
        )
