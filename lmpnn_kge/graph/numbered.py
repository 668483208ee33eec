"""Triples whose names have been replaced by numbers: what every reader of triples yields."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError
from lmpnn_kge.graph.triples import Triples

Int64s = npt.NDArray[np.int64]

NamedTriple = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class Numbered:
    """Distinct names, and triples [n, 3] of their positions, in the order of their source."""

    entities: list[str]
    relations: list[str]
    triples: Triples

    def __len__(self) -> int:
        return len(self.triples)

    @classmethod
    def of(cls, triples: Iterable[NamedTriple]) -> Numbered:
        """Number the names of triples by their first occurrence."""
        numbering = Numbering()
        for head, relation, tail in triples:
            numbering.add(head, relation, tail)
        return numbering.result()

    def sorted(self) -> Numbered:
        """Every triple once, in the order of its names, and the names in their own order.

        The result does not depend on the order of the source. Names without a triple are left out.
        """
        heads, relations, tails = self.triples.T
        used = np.zeros(len(self.entities), bool), np.zeros(len(self.relations), bool)
        used[0][heads] = used[0][tails] = used[1][relations] = True
        entities, entity_rows = _in_order(self.entities, used[0])
        names, relation_rows = _in_order(self.relations, used[1])
        if len(entities) ** 2 * len(names) >= 2**63:
            raise DatasetError(f"{len(entities):,} entities and {len(names):,} relations: too many")
        keys = entity_rows[heads] * len(names) + relation_rows[relations]
        keys *= len(entities)
        keys += entity_rows[tails]
        keys.sort()
        keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
        pairs, tails = np.divmod(keys, max(1, len(entities)))
        heads, relations = np.divmod(pairs, max(1, len(names)))
        return Numbered(entities, names, np.stack([heads, relations, tails], axis=1))

    def by_occurrence(self) -> Numbered:
        """The same triples, with names numbered by their first occurrence."""
        entities, entity_rows = _by_occurrence(self.entities, self.triples[:, ::2].ravel())
        names, relation_rows = _by_occurrence(self.relations, self.triples[:, 1])
        heads, relations, tails = self.triples.T
        rows = entity_rows[heads], relation_rows[relations], entity_rows[tails]
        return Numbered(entities, names, np.stack(rows, axis=1))

    @classmethod
    def joined(cls, parts: Sequence[Numbered]) -> Numbered:
        """The triples of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        entities: dict[str, int] = {}
        relations: dict[str, int] = {}
        triples = [np.empty((0, 3), np.int64)]
        for part in parts:
            entity_rows = _added(entities, part.entities)
            relation_rows = _added(relations, part.relations)
            heads, links, tails = part.triples.T
            rows = entity_rows[heads], relation_rows[links], entity_rows[tails]
            triples.append(np.stack(rows, axis=1))
        return cls(list(entities), list(relations), np.concatenate(triples))


class Numbering:
    """Numbers the names of triples one by one, by their first occurrence."""

    def __init__(self) -> None:
        self.entities: dict[str, int] = {}
        self.relations: dict[str, int] = {}
        self.rows = array("q")

    def add(self, head: str, relation: str, tail: str) -> None:
        self.rows.append(self.entities.setdefault(head, len(self.entities)))
        self.rows.append(self.relations.setdefault(relation, len(self.relations)))
        self.rows.append(self.entities.setdefault(tail, len(self.entities)))

    def result(self) -> Numbered:
        triples = np.frombuffer(self.rows, np.int64) if self.rows else np.empty(0, np.int64)
        return Numbered(list(self.entities), list(self.relations), triples.reshape(-1, 3))


def _in_order(names: list[str], used: npt.NDArray[np.bool_]) -> tuple[list[str], Int64s]:
    """The used names in their order, and the new row of each name."""
    order = sorted(used.nonzero()[0].tolist(), key=names.__getitem__)
    rows = np.zeros(len(names), np.int64)
    rows[order] = np.arange(len(order))
    return [names[row] for row in order], rows


def _by_occurrence(names: list[str], seen: Int64s) -> tuple[list[str], Int64s]:
    """The seen names by their first occurrence, and the new row of each name."""
    numbers, first = np.unique(seen, return_index=True)
    order = numbers[np.argsort(first)]
    rows = np.zeros(len(names), np.int64)
    rows[order] = np.arange(len(order))
    return [names[row] for row in order.tolist()], rows


def _added(table: dict[str, int], names: list[str]) -> Int64s:
    """The row of each name in a table, to which new names are added."""
    return np.fromiter((table.setdefault(name, len(table)) for name in names), np.int64, len(names))
