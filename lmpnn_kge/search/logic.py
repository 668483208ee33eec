"""Fuzzy logic on logarithms of truth, in which neither 0.999999 nor 0.000001 is rounded away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import torch
from torch import Tensor

from lmpnn_kge.methods.fuzzy import Product

TNormName = Literal["product", "godel"]

#: ∃ by its best entity, or by all of them: 1 − Π(1 − truth).
ExistsName = Literal["max", "noisy-or"]

#: The log truth of what search does not reach.
UNREACHED = -30.0

#: Below this log truth, an equality or a known edge speaks against something, or nothing for it.
IMPOSSIBLE = 2 * UNREACHED

#: A log truth above this is certain.
CERTAIN = -1e-6

#: The truth of what only uncertain paths support is at most this, however many they are.
ALMOST = 0.9999

#: Fuzzy NOT of log truths.
deny = Product().deny


@dataclass(frozen=True)
class Logic:
    """A way to join truths."""

    t_norm: TNormName
    exists: ExistsName

    def both(self, a: Tensor, b: Tensor) -> Tensor:
        """Fuzzy AND of two log truths."""
        return a + b if self.t_norm == "product" else torch.minimum(a, b)

    def every(self, truths: Sequence[Tensor]) -> Tensor:
        """Fuzzy AND of one or more log truths, whose shapes broadcast."""
        return reduce(self.both, truths)

    def either(self, truths: Sequence[Tensor]) -> Tensor:
        """Fuzzy OR of one or more log truths, by De Morgan."""
        if len(truths) == 1:
            return truths[0]
        return deny(self.every([deny(truth) for truth in truths]))

    def some(self, truths: Tensor, dim: int) -> Tensor:
        """Fuzzy ∃ of log truths along a dimension."""
        best = truths.amax(dim)
        if self.exists == "max":
            return best
        joined = deny(deny(truths).sum(dim)).clamp(max=math.log(ALMOST))
        return torch.where(best > CERTAIN, best, torch.maximum(joined, best))
