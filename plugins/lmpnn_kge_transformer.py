"""Transformer, which is HittER without context (Chen et al., 2021): an encoder reads [cls, h, r].

The encoding of cls is the estimate of the tail. A layer has two blocks, self-attention and two
linear layers; the input of each block is added to its output, and the sum is normalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmpnn_kge.plugin import Backbone, BackboneError, ScoreType, hookimpl, take_rows

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from typing_extensions import Self

    from lmpnn_kge.plugin import LibkgeCheckpoint, LibkgeModel

#: LibKGE's names for the rows of `tokens`, and for the tensors of every layer.
TOKENS = ("cls_emb", "sub_type_emb", "rel_type_emb")
LAYER = {
    "attend": "self_attn.in_proj_weight",
    "attend_bias": "self_attn.in_proj_bias",
    "merge": "self_attn.out_proj.weight",
    "merge_bias": "self_attn.out_proj.bias",
    "scale_1": "norm1.weight",
    "shift_1": "norm1.bias",
    "widen": "linear1.weight",
    "widen_bias": "linear1.bias",
    "narrow": "linear2.weight",
    "narrow_bias": "linear2.bias",
    "scale_2": "norm2.weight",
    "shift_2": "norm2.bias",
}
ACTIVATIONS = ("relu", "gelu")


@dataclass(frozen=True, eq=False, kw_only=True)
class Transformer(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "encoder(cls, h, r)"
    libkge_models = ("Transformer",)

    tokens: Tensor  # [3, d]: cls, and the vectors that are added to every h and to every r
    # For each of L layers, with m hidden units:
    attend: Tensor  # [L, 3d, d]: queries, keys and values
    attend_bias: Tensor  # [L, 3d]
    merge: Tensor  # [L, d, d]
    merge_bias: Tensor  # [L, d]
    scale_1: Tensor  # [L, d]
    shift_1: Tensor  # [L, d]
    widen: Tensor  # [L, m, d]
    widen_bias: Tensor  # [L, m]
    narrow: Tensor  # [L, d, m]
    narrow_bias: Tensor  # [L, d]
    scale_2: Tensor  # [L, d]
    shift_2: Tensor  # [L, d]
    heads: int = 8  # of the attention
    activation: str = "relu"

    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        import torch

        cls, head_type, relation_type = self.tokens
        rows = take_rows(self.relations, relations) + relation_type
        x = torch.stack([cls.expand_as(heads), heads + head_type, rows], dim=1)  # [n, 3, d]
        for tensors in zip(*(getattr(self, name) for name in LAYER), strict=True):
            x = self._layer(x, dict(zip(LAYER, tensors, strict=True)))
        return x[:, 0]

    def _layer(self, x: Tensor, layer: dict[str, Tensor]) -> Tensor:
        from torch.nn import functional

        def linear(x: Tensor, name: str) -> Tensor:
            return functional.linear(x, layer[name], layer[f"{name}_bias"])

        def norm(x: Tensor, number: int) -> Tensor:
            scale, shift = layer[f"scale_{number}"], layer[f"shift_{number}"]
            return functional.layer_norm(x, [self.dim], scale, shift)

        x = norm(x + linear(self._attention(linear(x, "attend")), "merge"), 1)
        hidden = getattr(functional, self.activation)(linear(x, "widen"))
        return norm(x + linear(hidden, "narrow"), 2)

    def _attention(self, x: Tensor) -> Tensor:
        """Attend with [queries ‖ keys ‖ values], [n, 3, 3d] -> [n, 3, d].

        For three tokens, elementwise products and sums are faster than small matrix products.
        """
        queries, keys, values = x.unflatten(2, (3, self.heads, -1)).unbind(2)  # [n, 3, heads, e]
        scores = (queries[:, :, None] * keys[:, None]).sum(-1)  # [n, 3, 3, heads]
        weights = (scores / keys.shape[-1] ** 0.5).softmax(2)
        return (weights[..., None] * values[:, None]).sum(2).flatten(2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.heads < 1 or self.dim % self.heads:
            raise BackboneError(
                f"Transformer with {self.heads} attention heads needs an entity width that is "
                f"divisible by their number, not {self.dim}"
            )
        if self.activation not in ACTIVATIONS:
            raise BackboneError(
                f"Transformer supports the activations {' and '.join(ACTIVATIONS)}, not "
                f"{str(self.activation)[:40]!r}"
            )
        layers, hidden = len(self.attend), self.widen.shape[1] if self.widen.dim() == 3 else 0
        shapes = {name: (layers, *shape) for name, shape in _shapes(self.dim, hidden).items()}
        for name, shape in {"tokens": (3, self.dim), **shapes}.items():
            actual = getattr(self, name).shape
            if actual != shape:
                raise BackboneError(
                    f"Transformer with {layers} layers and entities of width {self.dim} needs "
                    f"{name} of shape {list(shape)}, not {list(actual)}"
                )

    @staticmethod
    def entity_width(dim: int) -> int:
        return 8 * max(1, round(dim / 8))

    @classmethod
    def random_fields(cls, dim: int, generator: Generator) -> dict[str, Any]:
        import torch

        layers = 1  # more layers learn more slowly at the learning rate that suits the tables
        fields = {"tokens": 0.02 * torch.randn(3, dim, generator=generator)}
        for name, (rows, *columns) in _shapes(dim, hidden=4 * dim).items():
            if columns:
                weights = torch.randn(layers, rows, *columns, generator=generator)
                fields[name] = weights / columns[0] ** 0.5
            else:
                fields[name] = torch.full((layers, rows), float(name.startswith("scale")))
        return fields

    @classmethod
    def from_libkge(cls, checkpoint: LibkgeCheckpoint, **fields: Any) -> Self:
        import torch

        dim = checkpoint.entities.shape[1]
        hidden = len(checkpoint.scorer("encoder.layers.0.linear1.weight", None, dim))
        layers = 1
        while checkpoint.has_scorer(f"encoder.layers.{layers}.linear1.weight"):
            layers += 1
        for name, shape in _shapes(dim, hidden).items():
            parts = [
                checkpoint.scorer(f"encoder.layers.{layer}.{LAYER[name]}", *shape)
                for layer in range(layers)
            ]
            fields[name] = torch.stack(parts)
        activation = checkpoint.option("encoder.activation")
        return super().from_libkge(
            checkpoint,
            tokens=torch.stack([checkpoint.scorer(name, dim) for name in TOKENS]),
            heads=checkpoint.integer("encoder.nhead", 8),
            activation="relu" if activation is None else activation,
            **fields,
        )

    def to_libkge(self) -> LibkgeModel:
        layers, hidden, _ = self.widen.shape
        options = {
            "encoder.nhead": self.heads,
            "encoder.num_layers": layers,
            "encoder.dim_feedforward": hidden,
            "encoder.activation": self.activation,
        }
        scorer = dict(zip(TOKENS, self.tokens, strict=True))
        for name, in_libkge in LAYER.items():
            tensors = getattr(self, name)
            scorer[f"encoder_layer.{in_libkge}"] = tensors[0]  # LibKGE's unused template
            for layer, tensor in enumerate(tensors):
                scorer[f"encoder.layers.{layer}.{in_libkge}"] = tensor
        return super().to_libkge().adding(options, scorer)


def _shapes(dim: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """Shapes of a layer's tensors, by their names."""
    weights = {
        "attend": (3 * dim, dim),
        "merge": (dim, dim),
        "widen": (hidden, dim),
        "narrow": (dim, hidden),
    }
    vectors = {f"{name}_bias": shape[:1] for name, shape in weights.items()}
    norms = dict.fromkeys(("scale_1", "shift_1", "scale_2", "shift_2"), (dim,))
    return {**weights, **vectors, **norms}


@hookimpl
def lmpnn_kge_backbone() -> type[Backbone]:
    return Transformer
