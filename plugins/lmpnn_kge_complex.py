"""ComplEx (Trouillon et al., 2016): DistMult over complex numbers, stored as [real ‖ imaginary]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmpnn_kge.plugin import (
    Backbone,
    BackboneError,
    ScoreType,
    complex_product,
    hookimpl,
    take_rows,
)

if TYPE_CHECKING:
    from torch import Tensor


class ComplEx(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "h · r (complex)"
    inverse_formula = "conj(r)"
    libkge_models = ("ComplEx",)

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        return complex_product(heads, take_rows(self.relations, relations))

    @staticmethod
    def invert(relations: Tensor) -> Tensor:
        conjugate = relations.clone()
        conjugate[:, relations.shape[1] // 2 :].neg_()
        return conjugate

    @staticmethod
    def entity_width(dim: int) -> int:
        return dim + dim % 2

    @staticmethod
    def relation_width(dim: int) -> int:
        if dim % 2:
            raise BackboneError(f"ComplEx needs an even entity width, not {dim}")
        return dim


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return ComplEx
