"""The connected components of a graph, in columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmpnn_kge.graph.triples import Triples

Int64s = npt.NDArray[np.int64]


def component_sizes(triples: Triples, entities: int) -> Int64s:
    """The number of entities in each component, the largest first; edges count in both directions.

    Every entity points at one of its component with a smaller or the same number. An edge lets the
    larger of two roots point at the smaller one, and then every path is made shorter. The number of
    rounds grows with the logarithm of the longest path.
    """
    root = np.arange(entities)
    heads, tails = triples[:, 0], triples[:, 2]
    while len(heads):
        ends = root[heads], root[tails]
        low, high = np.minimum(*ends), np.maximum(*ends)
        apart = low != high
        heads, tails, low, high = heads[apart], tails[apart], low[apart], high[apart]
        np.minimum.at(root, high, low)
        while not np.array_equal(shorter := root[root], root):
            root = shorter
    return np.sort(np.unique(root, return_counts=True)[1])[::-1]
