"""RotatE (Sun et al., 2019): a relation turns each complex coordinate of an entity by an angle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmpnn_kge.plugin import (
    Backbone,
    BackboneError,
    ScoreType,
    complex_product,
    euclidean,
    hookimpl,
    take_rows,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from typing_extensions import Self

    from lmpnn_kge.plugin import LibkgeCheckpoint, LibkgeModel


@dataclass(frozen=True, eq=False, kw_only=True)
class RotatE(Backbone):
    score_type = ScoreType.DISTANCE
    formula = "h · e^(iθ)"
    inverse_formula = "−θ"
    libkge_models = ("RotatE",)

    p: float = 1.0  # p-norm over the moduli of the complex coordinates

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.p > 0:
            raise BackboneError(f"p of RotatE must be above 0, not {self.p}")

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        import torch

        angles = take_rows(self.relations, relations)  # [n, d / 2]
        return complex_product(heads, torch.cat([angles.cos(), angles.sin()], dim=-1))

    @staticmethod
    def invert(relations: Tensor) -> Tensor:
        return -relations

    @staticmethod
    def entity_width(dim: int) -> int:
        return dim + dim % 2

    @staticmethod
    def relation_width(dim: int) -> int:
        if dim % 2:
            raise BackboneError(f"RotatE needs an even entity width, not {dim}")
        return dim // 2

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        if self.p == 2:
            return (a - b).norm(dim=-1)
        (a_re, a_im), (b_re, b_im) = a.chunk(2, dim=-1), b.chunk(2, dim=-1)
        imaginary = a_im - b_im
        squares = (a_re - b_re).square_().addcmul_(imaginary, imaginary)
        moduli = squares.clamp_(min=1e-30).sqrt_()  # because a root has no gradient at 0
        return moduli.sum(-1) if self.p == 1 else moduli.norm(self.p, dim=-1)

    def distances(self, a: Tensor, b: Tensor, relations: Tensor) -> Tensor:
        return euclidean(a, b) if self.p == 2 else super().distances(a, b, relations)

    @classmethod
    def random_fields(cls, dim: int, generator: Generator) -> dict[str, Any]:
        return {"p": 2.0}  # trains many times faster than p = 1 and equally well

    @classmethod
    def from_libkge(cls, checkpoint: LibkgeCheckpoint, **fields: Any) -> Self:
        return super().from_libkge(checkpoint, p=checkpoint.number("l_norm", 1.0), **fields)

    def to_libkge(self) -> LibkgeModel:
        return super().to_libkge().adding({"l_norm": float(self.p), "normalize_phases": False})


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return RotatE
