"""An approximate index of entities: it finds most of the nearest ones without reading the table.

The index (HNSW, by usearch) holds the entities in 8 bits per number. What it finds are candidates,
which are scored again with their rows of the table, so that scores are exact, and only the choice
of candidates is not.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from lmpnn_kge.errors import FileError, LmpnnError, one_line
from lmpnn_kge.graph.answers import Int64s
from lmpnn_kge.methods.method import Streamed
from lmpnn_kge.methods.vectors import Vectors
from lmpnn_kge.work.deadline import check_time
from lmpnn_kge.work.listener import Listener

if TYPE_CHECKING:
    from usearch.index import Index

#: Settings of usearch: neighbours of an entity in the graph, and entities that are looked at while
#: one is added. More find more, and take longer.
SETTINGS: dict[str, Any] = {
    "metric": "cos",
    "dtype": "i8",
    "connectivity": 24,
    "expansion_add": 128,
}


@dataclass(frozen=True, eq=False)
class EntityIndex:
    """The entities of a method, by what they are near to."""

    library: Index
    num_entities: int
    _searching: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def candidates(self, vectors: Vectors, count: int) -> list[Int64s]:
        """For each query, about `count` entities near each of its vectors, in ascending order."""
        count = min(count, self.num_entities)
        owners = [queries.cpu().numpy() for queries in vectors.owners]
        queries = np.concatenate([np.arange(len(vectors)), *owners])
        found: list[list[Int64s]] = [[] for _ in range(len(vectors))]
        for query, vector in zip(queries, vectors.stacked.float().cpu().numpy(), strict=True):
            check_time()
            with self._searching:  # threads of one index would share its memory
                self.library.expansion_search = 2 * count
                keys = self.library.search(vector, count).keys.astype(np.int64)
            found[query].append(keys[(keys >= 0) & (keys < self.num_entities)])
        return [np.unique(np.concatenate(keys)) for keys in found]

    def save(self, file: Path) -> None:
        """Write a file that `load_index` reads."""
        try:
            self.library.save(str(file))
        except (OSError, RuntimeError) as error:  # of which usearch raises the latter
            raise FileError(f"{file} cannot be written: {one_line(error)}") from error


def build_index(method: Streamed, listener: Listener) -> EntityIndex:
    """An index of all entities, which are read once."""
    library = None
    listener.begin("indexing entities", method.num_entities)
    for span, block in method.blocks():
        if library is None:
            library = usearch().Index(ndim=block.shape[1], **SETTINGS)
        library.add(np.arange(span.start, span.stop, dtype=np.uint64), block.float().cpu().numpy())
        listener.advance(len(block))
    assert library is not None
    return EntityIndex(library, method.num_entities)


def load_index(file: Path, num_entities: int) -> EntityIndex:
    """An index that `EntityIndex.save` wrote; its pages stay in the file, which must be trusted."""
    library = usearch().Index.restore(str(file), view=True)
    return EntityIndex(library, num_entities)


def usearch() -> Any:
    """The library; LmpnnError if it is not installed."""
    try:
        from usearch import index
    except ImportError as error:
        raise LmpnnError(
            "approximate answers need usearch: run `pip install 'lmpnn-kge[index]'`"
        ) from error
    return index


def recall(best: list[Tensor], candidates: list[Int64s]) -> float:
    """The share of the best entities of all queries that are among their candidates."""
    hits = [
        np.isin(own.cpu().numpy(), near).mean() for own, near in zip(best, candidates, strict=True)
    ]
    return float(np.mean(hits))
