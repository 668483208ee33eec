"""The protocol of a way to answer queries, so that all of them are ranked by the same code."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from lmpnn_kge.query.patterns import Pattern


class Scores(Protocol):
    """The scores of a batch of queries, computed for a part of the batch at a time."""

    def __call__(self, rows: slice, out: Tensor | None = None) -> Tensor:
        """[n, E] for these rows of the batch; a method may write them into `out`, of that shape."""


class Method(Protocol):
    """A way to answer queries: it scores every entity."""

    @property
    def num_entities(self) -> int:
        """E, the number of entities that are scored."""

    @property
    def device(self) -> torch.device:
        """The device that queries are expected on."""

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """Answer queries [n, c] and [n, r] of one pattern, about one variable (`Pattern.about`)."""
