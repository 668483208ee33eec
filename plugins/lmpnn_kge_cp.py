"""CP (Hitchcock, 1927): an entity has one vector as a head and one as a tail, [head ‖ tail].

φ = Σ h₁ ∘ r ∘ t₂. A relation is half as wide as an entity. To score heads, a plain model uses the
same row r with the other half of the entities, as in LibKGE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmpnn_kge.plugin import Backbone, BackboneError, ScoreType, hookimpl, take_rows

if TYPE_CHECKING:
    from torch import Tensor


class CP(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "[0 ‖ h₁ ∘ r]"
    inverse_formula = "[t₂ ∘ r ‖ 0]"
    libkge_models = ("CP",)

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        import torch

        rows = take_rows(self.relations, relations)  # [n, d / 2]
        as_head, as_tail = heads.chunk(2, dim=-1)
        estimate = as_head * rows
        zeros = torch.zeros_like(estimate)
        if self.reciprocal:
            return torch.cat([zeros, estimate], dim=-1)
        backwards = (relations >= self.num_relations)[:, None]
        head = torch.where(backwards, as_tail * rows, zeros)
        tail = torch.where(backwards, zeros, estimate)
        return torch.cat([head, tail], dim=-1)

    @staticmethod
    def invert(relations: Tensor) -> Tensor:
        return relations

    @staticmethod
    def entity_width(dim: int) -> int:
        return dim + dim % 2

    @staticmethod
    def relation_width(dim: int) -> int:
        if dim % 2:
            raise BackboneError(f"CP needs an even entity width, not {dim}")
        return dim // 2


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return CP
