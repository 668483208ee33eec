"""Relational Tucker3 (Wang et al., 2019): RESCAL with matrices mixed from a shared core.

A relation is a row of weights over matrices that all relations share: W = projection · r.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmpnn_kge.plugin import Backbone, BackboneError, ScoreType, hookimpl, matmul_by_relation

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from typing_extensions import Self

    from lmpnn_kge.plugin import LibkgeCheckpoint, LibkgeModel


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationalTucker3(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "hᵀ W, W = G r"
    inverse_formula = "Wᵀ"
    libkge_models = ("RelationalTucker3",)

    projection: Tensor  # [d², b]: G, for relations of width b

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        return matmul_by_relation(heads, relations, self.matrices)

    @cached_property
    def matrices(self) -> Tensor:
        """W of all relations, [2R, d, d]: head coordinates down, tail coordinates across."""
        import torch

        # Evaluation may cache this first, and training must be able to use it afterwards.
        with torch.inference_mode(False):
            matrices = (self.relations @ self.projection.T).unflatten(1, (self.dim, self.dim))
            if self.reciprocal:
                return matrices
            matrices = matrices[: self.num_relations]
            return torch.cat([matrices, matrices.transpose(1, 2)])

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = [self.dim**2, self.relations.shape[1]]
        if list(self.projection.shape) != expected:
            raise BackboneError(
                f"RelationalTucker3 with entities of width {self.dim} and relations of width "
                f"{expected[1]} needs a projection of shape {expected}, not "
                f"{list(self.projection.shape)}"
            )

    @staticmethod
    def invert(relations: Tensor) -> Tensor:
        return relations  # forward transposes the matrices instead

    @staticmethod
    def relation_width(dim: int) -> None:
        return None

    @classmethod
    def random_fields(cls, dim: int, generator: Generator) -> dict[str, Any]:
        import torch

        return {"projection": torch.randn(dim * dim, dim, generator=generator) / dim**0.5}

    @classmethod
    def from_libkge(cls, checkpoint: LibkgeCheckpoint, **fields: Any) -> Self:
        rows, projection = checkpoint.projected_relations()
        checkpoint = dataclasses.replace(checkpoint, relations=rows)
        return super().from_libkge(checkpoint, projection=projection, **fields)

    def to_libkge(self) -> LibkgeModel:
        return dataclasses.replace(
            super().to_libkge(), section="relational_tucker3", projection=self.projection
        )


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return RelationalTucker3
