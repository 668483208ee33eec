"""The edges of a graph by relation and source, for a look-up that costs the same in any graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.graph.answers import Int32s, Int64s, spread
from lmpnn_kge.graph.triples import both_directions

Ints = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Edges of both directions, sorted by relation and source. Those that share both are a group.

    Relation r + R is the inverse of relation r. level is the number of the split of an edge.
    """

    entities: int
    relations: int  # R
    target: Int32s  # [m]
    level: npt.NDArray[np.int8]  # [m]
    key: Int64s  # [g]: relation · E + source of each group, ascending
    first: Int64s  # [g + 1]: the first edge of each group

    @classmethod
    def of(cls, triples: Ints, level: Ints, entities: int, relations: int) -> Adjacency:
        """The index of triples [n, 3], which are sorted by head, relation and tail."""
        source, relation, target = both_directions(triples, relations).T
        keys = relation * np.int64(entities) + source
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        return cls(
            entities,
            relations,
            target[order].astype(np.int32),
            np.tile(level.astype(np.int8), 2)[order],
            keys[starts],
            np.append(starts, len(keys)),
        )

    def __len__(self) -> int:
        return len(self.target)

    def inverse(self, relation: Ints) -> Ints:
        """The inverses of relations."""
        return (relation + self.relations) % (2 * self.relations)

    def groups(self, keys: Ints) -> tuple[Int64s, npt.NDArray[np.bool_]]:
        """The group of each key, and whether there is one."""
        if not len(self.key):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        group = np.minimum(np.searchsorted(self.key, keys), len(self.key) - 1)
        return group, self.key[group] == keys

    def sizes(self, groups: Int64s) -> Int64s:
        """How many edges each group has."""
        return self.first[groups + 1] - self.first[groups]

    def members(self, groups: Int64s) -> tuple[Int64s, Int64s]:
        """All edges of some groups: for each, the index of its group and its position."""
        return spread(self.first[groups], self.sizes(groups))

    def columns(self, groups: Int64s | None = None) -> dict[str, Ints]:
        """The columns s, p, o and level of all edges, or of those of some groups."""
        chosen = np.arange(len(self.key)) if groups is None else groups
        position = slice(None) if groups is None else self.members(groups)[1]
        relation, source = np.divmod(self.key[chosen], max(1, self.entities))
        sizes = self.sizes(chosen)
        return {
            "s": np.repeat(source.astype(np.int32), sizes),
            "p": np.repeat(relation.astype(np.int32), sizes),
            "o": self.target[position],
            "level": self.level[position],
        }
