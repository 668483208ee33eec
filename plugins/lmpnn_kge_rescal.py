"""RESCAL (Nickel et al., 2011): a relation is a matrix W with φ(h, r, t) = hᵀ W t."""

from __future__ import annotations

import dataclasses
from math import isqrt
from typing import TYPE_CHECKING, Any

from lmpnn_kge.plugin import Backbone, ScoreType, hookimpl, matmul_by_relation

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Self


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

    @classmethod
    def random(cls, num_entities: int, num_relations: int, dim: int, **options: Any) -> Self:
        made = super().random(num_entities, num_relations, dim, **options)
        # Scaled so that hᵀ W is about as long as h; larger matrices are dominated by the penalty.
        return dataclasses.replace(made, relations=made.relations / dim**0.5)


def _matrices(relations: Tensor) -> Tensor:
    """Rows [R, d²] as matrices [R, d, d]: head coordinates down, tail coordinates across."""
    d = isqrt(relations.shape[1])
    return relations.unflatten(1, (d, d))


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return Rescal
