"""DistMult (Yang et al., 2015): a relation weighs each coordinate of an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmpnn_kge.plugin import Backbone, ScoreType, hookimpl, take_rows

if TYPE_CHECKING:
    from torch import Tensor


class DistMult(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "h ∘ r"
    inverse_formula = "r"
    libkge_models = ("DistMult",)

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        return heads * take_rows(self.relations, relations)

    @staticmethod
    def invert(relations: Tensor) -> Tensor:
        return relations


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return DistMult
