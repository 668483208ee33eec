"""TransH (Wang et al., 2014): a relation moves entities by a vector v on its own hyperplane.

A relation is [v ‖ w]. With n = w / ‖w‖ and P x = x − (x · n) n, φ = −‖P h + v − P t‖: the tail is
projected, too. LibKGE adds 1e-6 to each coordinate of that difference; this backbone does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmpnn_kge.plugin import Backbone, BackboneError, ScoreType, hookimpl, minkowski

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from typing_extensions import Self

    from lmpnn_kge.plugin import LibkgeCheckpoint, LibkgeModel


@dataclass(frozen=True, eq=False, kw_only=True)
class TransH(Backbone):
    score_type = ScoreType.DISTANCE
    formula = "P h + v, to P t"
    inverse_formula = "[−v ‖ w]"
    libkge_models = ("TransH",)

    p: float = 1.0  # distances are p-norms

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.p > 0:
            raise BackboneError(f"p of TransH must be above 0, not {self.p}")

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        return self.project(heads, relations) + self.relations[relations, : self.dim]

    def project(self, tails: Tensor, relations: Tensor) -> Tensor:
        import torch

        normals = self._normals(relations)
        heights = torch.einsum("...d, ...d -> ...", tails, normals)[..., None]  # a matrix product
        return torch.addcmul(tails, heights, normals, value=-1)

    def _normals(self, relations: Tensor) -> Tensor:
        from torch.nn import functional

        return functional.normalize(self.relations[relations, self.dim :], dim=-1)

    @staticmethod
    def invert(relations: Tensor) -> Tensor:
        inverse = relations.clone()
        inverse[:, : relations.shape[1] // 2].neg_()
        return inverse

    @staticmethod
    def relation_width(dim: int) -> int:
        return 2 * dim

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        return minkowski(a, b, self.p)

    def distances(self, a: Tensor, b: Tensor, relations: Tensor) -> Tensor:
        if self.p != 2:
            return super().distances(a, b, relations)
        # ‖a − P b‖² = ‖a‖² + ‖b‖² − (n · b)² − 2 (P a) · b
        squares = a.square().sum(1, keepdim=True) + b.square().sum(1)
        squares = squares - (self._normals(relations) @ b.T).square()
        squares = squares - 2 * self.project(a, relations) @ b.T
        return squares.clamp(min=1e-6).sqrt()

    @classmethod
    def random_fields(cls, dim: int, generator: Generator) -> dict[str, Any]:
        return {"p": 2.0}  # trains many times faster than p = 1 and equally well

    @classmethod
    def from_libkge(cls, checkpoint: LibkgeCheckpoint, **fields: Any) -> Self:
        return super().from_libkge(checkpoint, p=checkpoint.number("l_norm", 1.0), **fields)

    def to_libkge(self) -> LibkgeModel:
        return super().to_libkge().adding({"l_norm": float(self.p)})


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return TransH
