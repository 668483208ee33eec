"""Fuzzy logic: truth values of literals, joined by a t-norm, in numbers that do not saturate.

A literal with logit x has the truth σ(x), its negation σ(−x) = 1 − σ(x). Each t-norm computes with
its own values, logarithms of truth or logits; in both, larger is truer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor

#: The value closest to log 1 = 0 that is still distinct; the gradient of its complement is 1e30.
ALMOST_TRUE = -1e-30

#: About log ½, from where on the second formula of the complement is more exact than the first.
HALF_TRUE = -0.7


class Product:
    """a ⊤ b = a · b; values are logarithms of truth."""

    def literal(self, logits: Tensor) -> Tensor:
        """The values of literals."""
        return F.logsigmoid(logits)

    def both(self, a: Tensor, b: Tensor) -> Tensor:
        """Fuzzy AND."""
        return a + b

    def deny(self, value: Tensor) -> Tensor:
        """Fuzzy NOT: log(1 − truth), exact for truths near 0 and near 1."""
        small = torch.log1p(-value.clamp(max=HALF_TRUE).exp())
        large = torch.log(-torch.expm1(value.clamp(HALF_TRUE, ALMOST_TRUE)))
        return torch.where(value < HALF_TRUE, small, large)

    def log(self, value: Tensor) -> Tensor:
        """The logarithm of the truth."""
        return value


class Godel:
    """a ⊤ b = min(a, b); values are logits, which order like truths because σ is monotone."""

    def literal(self, logits: Tensor) -> Tensor:
        """The values of literals."""
        return logits

    def both(self, a: Tensor, b: Tensor) -> Tensor:
        """Fuzzy AND."""
        return torch.minimum(a, b)

    def deny(self, value: Tensor) -> Tensor:
        """Fuzzy NOT."""
        return -value

    def log(self, value: Tensor) -> Tensor:
        """The logarithm of the truth."""
        return F.logsigmoid(value)


TNorm = Product | Godel

T_NORMS: dict[str, TNorm] = {"product": Product(), "godel": Godel()}


def conjoin(norm: TNorm, values: Sequence[Tensor]) -> Tensor:
    """Fuzzy AND of values whose shapes broadcast."""
    return reduce(norm.both, values)


def disjoin(norm: TNorm, values: Sequence[Tensor]) -> Tensor:
    """Fuzzy OR by De Morgan: not(and(not a, not b, …))."""
    if len(values) == 1:
        return values[0]
    return norm.deny(conjoin(norm, [norm.deny(value) for value in values]))
