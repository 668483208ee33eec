"""RESCAL (Nickel et al., 2011): a relation is a matrix W with φ(h, r, t) = hᵀ W t."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from lmpnn_kge import Backbone, ScoreType, hookimpl, matmul_by_relation

if TYPE_CHECKING:
    from torch import Tensor


class Rescal(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "hᵀ W"
    inverse_formula = "Wᵀ"
    libkge_models = ("Rescal",)

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        return matmul_by_relation(heads, relations, _matrices(self.relations))

    @staticmethod
    def invert(relations: Tensor) -> Tensor:
        return _matrices(relations).transpose(1, 2).flatten(1)

    @staticmethod
    def relation_width(dim: int) -> int:
        return dim * dim


def _matrices(relations: Tensor) -> Tensor:
    """Rows [R, d²] as matrices [R, d, d]: head coordinates down, tail coordinates across."""
    d = isqrt(relations.shape[1])
    return relations.unflatten(1, (d, d))


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return Rescal
