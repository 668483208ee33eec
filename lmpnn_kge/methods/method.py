"""The protocol of a way to answer queries, so that all of them are ranked by the same code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

from lmpnn_kge.query.patterns import Pattern


class Scores(Protocol):
    """The scores of a batch of queries, computed for a part of the batch at a time."""

    def __call__(self, rows: slice, out: Tensor | None = None) -> Tensor:
        """[n, E] for these rows of the batch; a method may write them into `out`, of that shape."""


class Streamed(Protocol):
    """A method that can score some entities at a time: its scores are products of vectors.

    A query has a vector for each of its disjuncts, and the best one counts for an entity.
    """

    @property
    def num_entities(self) -> int:
        """E, the number of entities that are scored."""

    @property
    def device(self) -> torch.device:
        """The device that queries are expected on, and that blocks are on."""

    @property
    def block_rows(self) -> int:
        """The number of entities in all blocks but the last."""

    def vectors(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Tensor:
        """Queries [n, c] and [n, r] of one pattern -> [disjuncts, n, d]."""

    def unit(self, ids: Tensor) -> Tensor:
        """The vectors of some entities: ids [n] -> [n, d]."""

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """The vectors of all entities in blocks that the device holds: which, and [n, d]."""


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

    @property
    def streamed(self) -> Streamed | None:
        """The same method for many entities, if it need not hold the scores of all of them."""
