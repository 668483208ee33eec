"""ConvE (Dettmers et al., 2018): a convolution over head and relation, stacked as an image.

Column 0 of the entity table is the bias of an entity as a tail. With f(h, r) = [1 ‖ y] the score
y · t[1:] + t[0] is a plain inner product.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

from lmpnn_kge.plugin import Backbone, BackboneError, ScoreType, hookimpl, take_rows

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from typing_extensions import Self

    from lmpnn_kge.plugin import LibkgeCheckpoint, LibkgeModel


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvE(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "[1 ‖ conv(h, r)]"
    libkge_models = ("ConvE",)

    # Both batch norms are frozen, so they are folded into the layers before them.
    filters: Tensor  # [C, 1, k, k]
    filter_bias: Tensor  # [C]
    projection: Tensor  # [d - 1, C * height' * width']
    projection_bias: Tensor  # [d - 1]
    height: int  # of an entity as an image, height * width = d - 1
    stride: int = 1
    padding: int = 0

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        import torch
        from torch.nn import functional

        image = torch.cat([heads[:, 1:], take_rows(self.relations, relations)[:, 1:]], dim=1)
        width = (self.dim - 1) // self.height
        image = image.view(len(heads), 1, 2 * self.height, width)  # h above r
        features = functional.conv2d(
            image, self.filters, self.filter_bias, stride=self.stride, padding=self.padding
        ).relu()
        y = functional.linear(features.flatten(1), self.projection, self.projection_bias).relu()
        return torch.cat([torch.ones_like(y[:, :1]), y], dim=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        channels, _, kernel, _ = self.filters.shape
        size = self.dim - 1
        rows = (2 * self.height + 2 * self.padding - kernel) // self.stride + 1
        columns = (size // self.height + 2 * self.padding - kernel) // self.stride + 1
        expected = [size, channels * rows * columns]
        is_image = size == self.height * (size // self.height) and min(rows, columns, channels) > 0
        is_square = self.filters.shape == (channels, 1, kernel, kernel)
        if not (is_image and is_square and list(self.projection.shape) == expected):
            raise BackboneError(
                f"ConvE with entities of width {self.dim} as images of {self.height} rows and "
                f"{channels} filters of {kernel} × {kernel} needs a projection of shape "
                f"{expected}, not {list(self.projection.shape)}"
            )

    @classmethod
    def from_libkge(cls, checkpoint: LibkgeCheckpoint, **fields: Any) -> Self:
        filters = checkpoint.scorer("convolution.weight", None, 1, None, None)
        projection = checkpoint.scorer("projection.weight", None, None)
        filter_bias = filters.new_zeros(len(filters))  # LibKGE can train without this bias
        if checkpoint.has_scorer("convolution.bias"):
            filter_bias = checkpoint.scorer("convolution.bias", len(filters))
        projection_bias = checkpoint.scorer("projection.bias", len(projection))
        filters, filter_bias = _fold_batch_norm(checkpoint, "bn1", filters, filter_bias)
        projection, projection_bias = _fold_batch_norm(
            checkpoint, "bn2", projection, projection_bias
        )
        size = max(1, checkpoint.entities.shape[1] - 1)
        aspect_ratio = checkpoint.number("2D_aspect_ratio", 2, above=1e-3)
        return super().from_libkge(
            checkpoint,
            filters=filters,
            filter_bias=filter_bias,
            projection=projection,
            projection_bias=projection_bias,
            height=max(1, round((size / aspect_ratio) ** 0.5)),
            stride=checkpoint.integer("stride", 1),
            padding=checkpoint.integer("padding", 0, above=-1),
            **fields,
        )

    def to_libkge(self) -> LibkgeModel:
        size = self.dim - 1
        aspect_ratio = size / self.height / self.height
        self._check_libkge(aspect_ratio)
        options = {
            "entity_embedder.dim": size,  # LibKGE adds the column of biases
            "relation_embedder.dim": size,
            "2D_aspect_ratio": int(aspect_ratio) if aspect_ratio.is_integer() else aspect_ratio,
            "filter_size": self.filters.shape[-1],
            "stride": self.stride,
            "padding": self.padding,
            "convolution_bias": True,
        }
        scorer = {
            "convolution.weight": self.filters,
            "convolution.bias": self.filter_bias,
            **_idle_batch_norm("bn1", self.filter_bias),
            **_idle_batch_norm("bn2", self.projection_bias),
            "projection.weight": self.projection,
            "projection.bias": self.projection_bias,
        }
        return super().to_libkge().adding(options, scorer)

    def _check_libkge(self, aspect_ratio: float) -> None:
        """Raise BackboneError if LibKGE, which computes the sizes itself, would get other ones."""
        channels, _, kernel, _ = self.filters.shape
        size = self.dim - 1
        height = (size / aspect_ratio) ** 0.5
        width = height * aspect_ratio
        rows = (2 * height - kernel + 2 * self.padding) / self.stride + 1
        columns = (width - kernel + 2 * self.padding) / self.stride + 1
        sizes = height, height * width, channels * int(rows * columns), channels
        if sizes != (self.height, size, self.projection.shape[1], 32):
            raise BackboneError(
                f"LibKGE has no ConvE with {channels} filters of {kernel} × {kernel} at stride "
                f"{self.stride} over images of {self.height} × {size // self.height}: it needs 32 "
                "filters that cover the image without a remainder; write it to a .safetensors file"
            )

    @staticmethod
    def entity_width(dim: int) -> int:
        return 1 + 2 * max(2, round((dim / 2) ** 0.5)) ** 2  # one bias, and an image of a × 2a

    @classmethod
    def random_fields(cls, dim: int, generator: Generator) -> dict[str, Any]:
        import torch

        channels, kernel, size = 32, 3, dim - 1
        height = isqrt(size // 2)
        if height < 2 or size != 2 * height * height:
            raise BackboneError(f"ConvE needs an entity width of 1 + 2 a², a > 1, not {dim}")
        features = channels * (2 * height - kernel + 1) * (2 * height - kernel + 1)
        return {
            "filters": torch.randn(channels, 1, kernel, kernel, generator=generator) / kernel,
            "filter_bias": torch.zeros(channels),
            "projection": torch.randn(size, features, generator=generator) / features**0.5,
            "projection_bias": torch.zeros(size),
            "height": height,
        }


def _fold_batch_norm(
    checkpoint: LibkgeCheckpoint, name: str, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor]:
    """Weight and bias of one layer that replaces a layer and the batch norm after it."""
    mean = checkpoint.scorer(f"{name}.running_mean", len(weight))
    variance = checkpoint.scorer(f"{name}.running_var", len(weight))
    scale = (variance + 1e-5).rsqrt()
    return (weight.transpose(0, -1) * scale).transpose(0, -1), (bias - mean) * scale


def _idle_batch_norm(name: str, bias: Tensor) -> dict[str, Tensor]:
    """Make a batch norm that changes nothing: 1 / √(variance + 1e-5) is exactly 1."""
    import torch

    return {
        f"{name}.running_mean": torch.zeros(len(bias), dtype=torch.float32),
        f"{name}.running_var": torch.full((len(bias),), 1 - 1e-5, dtype=torch.float32),
        f"{name}.num_batches_tracked": torch.tensor(0),
    }


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return ConvE
