"""SimplE (Kazemi and Poole, 2018): CP in both directions at once.

An entity is [head ‖ tail], a relation [forward ‖ backward] with one vector for each direction;
φ = ½ (Σ h₁ ∘ r₁ ∘ t₂ + Σ h₂ ∘ r₂ ∘ t₁).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmpnn_kge.plugin import Backbone, BackboneError, ScoreType, hookimpl, take_rows

if TYPE_CHECKING:
    from torch import Tensor


class SimplE(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "½ [h₂ ∘ r₂ ‖ h₁ ∘ r₁]"
    inverse_formula = "[r₂ ‖ r₁]"
    libkge_models = ("SimplE",)

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        return _swap_halves(heads * take_rows(self.relations, relations)) / 2

    @staticmethod
    def invert(relations: Tensor) -> Tensor:
        return _swap_halves(relations)

    @staticmethod
    def entity_width(dim: int) -> int:
        return dim + dim % 2

    @staticmethod
    def relation_width(dim: int) -> int:
        if dim % 2:
            raise BackboneError(f"SimplE needs an even entity width, not {dim}")
        return dim


def _swap_halves(rows: Tensor) -> Tensor:
    return rows.roll(rows.shape[1] // 2, dims=1)


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return SimplE
