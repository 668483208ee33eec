"""Triples as arrays, [n, 3]: the rows of head, relation and tail. Relation r + R inverts r."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

#: The splits of a graph, each of which also knows the edges of those before it.
SPLITS = ("train", "valid", "test")

Triples = npt.NDArray[np.int64]  # [n, 3]

Number = TypeVar("Number", bound=np.integer)


def both_directions(triples: npt.NDArray[Number], num_relations: int) -> npt.NDArray[Number]:
    """The triples, then their inverses: (t, r + R, h) for (h, r, t). [n, 3] -> [2n, 3]"""
    heads, relations, tails = triples.T
    inverses = np.stack([tails, relations + num_relations, heads], axis=1)
    return np.concatenate([triples, inverses])


def distinct(keys: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Each of the keys [n] once, ascending.

    np.unique first collects them in a hash table, which is many times slower for millions of keys.
    """
    ordered = np.sort(keys, axis=None)
    return ordered[np.concatenate([ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]])]


def spread_evenly(count: int, most: int) -> npt.NDArray[np.int64]:
    """At most `most` of the rows 0 … count − 1, evenly spread from the first to the last."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).astype(np.int64)
