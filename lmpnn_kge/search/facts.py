"""Known edges as tensors, by head and relation, for many look-ups at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.device import moved_fields
from lmpnn_kge.errors import DatasetError
from lmpnn_kge.graph.triples import Triples, both_directions, distinct

#: An edge is a number of 64 bits.
MOST = 2**63


@dataclass(frozen=True, eq=False)
class Facts:
    """The edges of a graph in both directions. Relation r + R is the inverse of relation r.

    A head and a relation make a key, h · 2R + r. The tails of a key lie together.
    """

    num_entities: int
    num_relations: int  # R
    keys: Tensor  # [k], distinct and ascending
    offsets: Tensor  # [k + 1]: the first tail of each key
    tails: Tensor  # [n], ascending for each key

    @classmethod
    def of(cls, triples: Triples, num_entities: int, num_relations: int) -> Facts:
        """The edges of triples [m, 3]; repeated ones count once."""
        if 2 * num_relations * num_entities**2 > MOST:
            raise DatasetError(
                f"{num_entities:,} entities with {num_relations:,} relations have more possible "
                "edges than 64 bits can number"
            )
        head, relation, tail = both_directions(triples, num_relations).T
        edges = distinct((head * (2 * num_relations) + relation) * num_entities + tail)
        keys = edges // num_entities
        first = np.flatnonzero(np.diff(keys, prepend=-1))  # they are in ascending order
        arrays = keys[first], np.append(first, len(edges)), edges % num_entities
        return cls(num_entities, num_relations, *map(torch.from_numpy, arrays))

    def to(self, device: torch.device) -> Facts:
        return replace(self, **moved_fields(self, device))

    def __len__(self) -> int:
        """The number of edges, each counted in both directions."""
        return len(self.tails)

    def keys_of(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The keys of heads and relations, which broadcast."""
        return heads * (2 * self.num_relations) + relations

    def count(self, keys: Tensor) -> Tensor:
        """The number of known tails of each key."""
        first, last = self._ranges(keys)
        return last - first

    def tails_of(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """All known tails of keys [m]: for each, the position of its key and the tail."""
        first, last = self._ranges(keys)
        counts = last - first
        owners = torch.repeat_interleave(torch.arange(len(keys), device=keys.device), counts)
        starts = counts.cumsum(0) - counts
        inside = torch.arange(len(owners), device=keys.device) - starts[owners]
        return owners, self.tails[first[owners] + inside]

    def hold(self, keys: Tensor, tails: Tensor) -> Tensor:
        """Whether each key has the tail beside it."""
        edges = keys * self.num_entities + tails
        position = torch.searchsorted(self._edges, edges).clamp(max=max(0, len(self._edges) - 1))
        return self._edges[position] == edges if len(self._edges) else torch.zeros_like(edges) > 0

    def heads(self, relation: int) -> Tensor:
        """The entities that have a known edge of a relation, in ascending order."""
        heads, _, offsets = self._by_relation
        return heads[offsets[relation] : offsets[relation + 1]]

    def heads_of(self, relations: Tensor) -> Tensor:
        """For relations [m], a mask [m, E] of the entities that have a known edge of them."""
        distinct, rows = relations.unique(return_inverse=True)
        having = torch.zeros(
            len(distinct), self.num_entities, dtype=torch.bool, device=relations.device
        )
        for row, relation in enumerate(distinct.tolist()):
            having[row, self.heads(relation)] = True
        return having[rows]

    def tail_counts(self, relations: Tensor) -> Tensor:
        """For relations [m], the number of known edges that end at each entity, [m, E]."""
        distinct, rows = relations.unique(return_inverse=True)
        counts = torch.zeros(len(distinct), self.num_entities, device=relations.device)
        heads, numbers, offsets = self._by_relation
        for row, relation in enumerate(distinct.tolist()):
            inverse = (relation + self.num_relations) % (2 * self.num_relations)
            part = slice(offsets[inverse], offsets[inverse + 1])
            counts[row, heads[part]] = numbers[part]
        return counts[rows]

    @cached_property
    def loops(self) -> Tensor:
        """Whether a relation has a known edge from an entity to itself, [2R]."""
        width = 2 * self.num_relations
        keys = torch.repeat_interleave(self.keys, self.offsets.diff())
        loops = keys[keys // width == self.tails] % width
        return torch.bincount(loops, minlength=width) > 0

    @cached_property
    def _by_relation(self) -> tuple[Tensor, Tensor, list[int]]:
        """Heads and numbers of tails of all keys, by relation, and where each relation begins."""
        relations, order = (self.keys % (2 * self.num_relations)).sort(stable=True)
        every = torch.arange(2 * self.num_relations + 1, device=relations.device)
        heads = self.keys[order] // (2 * self.num_relations)
        counts = self.offsets.diff()[order].float()
        return heads, counts, torch.searchsorted(relations, every).tolist()

    @cached_property
    def _edges(self) -> Tensor:
        """Key · E + tail of every edge, ascending."""
        counts = self.offsets.diff()
        return torch.repeat_interleave(self.keys, counts) * self.num_entities + self.tails

    def _ranges(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        position = torch.searchsorted(self.keys, keys).clamp(max=max(0, len(self.keys) - 1))
        if not len(self.keys):
            return torch.zeros_like(keys), torch.zeros_like(keys)
        known = self.keys[position] == keys
        first = self.offsets[position]
        return first, torch.where(known, self.offsets[position + 1], first)
