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

#: The value nearest to log 1 that is told from it; the gradient of its complement is 1e30.
ALMOST_TRUE = -1e-30

#: Where one formula of the complement becomes more exact than the other, about log ½.
HALF_TRUE = -0.7


class Product:
    """a ⊤ b = a · b, in logarithms of truth."""

    def literal(self, logits: Tensor) -> Tensor:
        return F.logsigmoid(logits)

    def both(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b

    def deny(self, value: Tensor) -> Tensor:
        """log (1 − truth), exact for truths near 0 and near 1."""
        small = torch.log1p(-value.clamp(max=HALF_TRUE).exp())
        large = torch.log(-torch.expm1(value.clamp(HALF_TRUE, ALMOST_TRUE)))
        return torch.where(value < HALF_TRUE, small, large)

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
