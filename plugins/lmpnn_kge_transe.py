"""TransE (Bordes et al., 2013): a relation moves an entity by a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmpnn_kge import Backbone, ScoreType, hookimpl

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Self

    from lmpnn_kge import LibkgeCheckpoint


@dataclass(frozen=True, eq=False, kw_only=True)
class TransE(Backbone):
    score_type = ScoreType.DISTANCE
    formula = "h + r"
    inverse_formula = "−r"
    libkge_models = ("TransE",)

    p: float = 1.0  # of the p-norm that measures distances

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        return heads + self.relations[relations]

    @staticmethod
    def invert(relations: Tensor) -> Tensor:
        return -relations

    def length(self, difference: Tensor) -> Tensor:
        return difference.norm(self.p, dim=-1)

    def distances(self, queries: Tensor) -> Tensor:
        import torch

        # The other way, by a matrix product, loses small distances to cancellation.
        exact = "donot_use_mm_for_euclid_dist"
        return torch.cdist(queries, self.entities, p=self.p, compute_mode=exact)

    @classmethod
    def from_libkge(cls, checkpoint: LibkgeCheckpoint, **fields: Any) -> Self:
        return super().from_libkge(
            checkpoint, p=checkpoint.number("l_norm", 1.0, above=0), **fields
        )


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return TransE
