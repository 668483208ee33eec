"""Fuzzy logic: truth values of literals, joined by a t-norm, in numbers that do not saturate.

A literal is σ(x) true and its negation σ(−x) = 1 − σ(x). A t-norm works on values of its own,
logarithms of truth or logits x; larger is truer in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor

#: The value nearest to log 1 whose complement still has a logarithm.
ALMOST_TRUE = -1e-37


class Product:
    """a ⊤ b = a · b, in logarithms of truth."""

    def literal(self, logits: Tensor) -> Tensor:
        return F.logsigmoid(logits)

    def both(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b

    def deny(self, value: Tensor) -> Tensor:
        """log (1 − truth), exact for truths near 0 and near 1."""
        value = value.clamp(max=ALMOST_TRUE)
        rare = torch.log1p(-value.exp())
        return torch.where(value < -0.7, rare, torch.log(-torch.expm1(value)))

    def log(self, value: Tensor) -> Tensor:
        return value


class Godel:
    """a ⊤ b = min(a, b), in logits, for σ is monotone."""

    def literal(self, logits: Tensor) -> Tensor:
        return logits

    def both(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.minimum(a, b)

    def deny(self, value: Tensor) -> Tensor:
        return -value

    def log(self, value: Tensor) -> Tensor:
        return F.logsigmoid(value)


TNorm = Product | Godel

T_NORMS: dict[str, TNorm] = {"product": Product(), "godel": Godel()}


def conjoin(norm: TNorm, values: Sequence[Tensor]) -> Tensor:
    """The truth of all, of shapes that broadcast."""
    return reduce(norm.both, values)


def disjoin(norm: TNorm, values: Sequence[Tensor]) -> Tensor:
    """The truth of any: what the t-norm says of none."""
    if len(values) == 1:
        return values[0]
    return norm.deny(conjoin(norm, [norm.deny(value) for value in values]))
