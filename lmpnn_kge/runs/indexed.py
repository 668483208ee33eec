"""The approximate index of a run: built once for a checkpoint, and its recall measured for a run.

The index lies in a folder of the user (`cache_folder`), never in that of a run: the library that
reads it does not check it, and runs may come from strangers. The recall is kept in the run.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lmpnn_kge.errors import FileError, one_line
from lmpnn_kge.files import atomic_folder, file_hash, relative
from lmpnn_kge.graph.memory import size_text
from lmpnn_kge.graph.triples import spread_evenly
from lmpnn_kge.methods.index import (
    SETTINGS,
    EntityIndex,
    build_index,
    load_index,
    recall,
    usearch,
)
from lmpnn_kge.methods.method import Streamed
from lmpnn_kge.methods.rank import capped
from lmpnn_kge.methods.vectors import Vectors
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import Pattern, named_patterns
from lmpnn_kge.runs.best import CANDIDATES, best_in_blocks
from lmpnn_kge.runs.kept import read_json, write_json
from lmpnn_kge.work.listener import Listener

KIND, FORMAT = "lmpnn-kge index", 1

#: Files of an index, and the file of a run with the recall.
INDEX, MANIFEST, RECALL = "index.usearch", "manifest.json", "approximate.json"

#: Rows of the table that identify it, besides the hash of its checkpoint.
IDENTIFYING = 256

#: Queries that the recall is measured on, and how many of their best entities must be found.
MEASURED, BEST = 64, 10


def cache_folder() -> Path:
    """Where indices are kept."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        base = Path(given)
    else:
        try:
            base = Path.home() / ".cache"
        except RuntimeError as error:  # as in a container whose user has no name
            raise FileError(
                "the index of approximate answers needs a folder, but this user has no home; set "
                "XDG_CACHE_HOME to a folder"
            ) from error
    return base / "lmpnn-kge" / "indices"


@dataclass(frozen=True, eq=False)
class Indexing:
    """The index of a run, opened when it is first needed."""

    method: Streamed
    checkpoint: str  # its hash
    network: Path
    recall_file: Path
    queries: Callable[[], Mapping[str, Queries]]  # to measure the recall on, perhaps none
    _opened: list[tuple[EntityIndex, float, int]] = field(default_factory=list, repr=False)
    _opening: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def open(self, listener: Listener) -> EntityIndex:
        """Read or build the index, and say how much it finds."""
        with self._opening:
            if not self._opened:
                index = self._index(listener)
                self._opened.append((index, *self._recall(index, listener)))
        index, share, count = self._opened[0]
        listener.note(
            f"answers are approximate: the index finds {share:.1%} of the {BEST} nearest entities "
            f"of {count} sample queries"
        )
        return index

    @torch.inference_mode()
    def _index(self, listener: Listener) -> EntityIndex:
        usearch()  # if it is not installed, that is the first thing to know
        rows = spread_evenly(self.method.num_entities, IDENTIFYING)
        numbers = self.method.unit(torch.from_numpy(np.asarray(rows, np.int64)))
        table = sha256(numbers.float().cpu().numpy().tobytes()).hexdigest()
        head = {
            "kind": KIND,
            "format": FORMAT,
            "checkpoint": self.checkpoint,
            "entities": [self.method.num_entities, numbers.shape[1], table],
            "settings": SETTINGS,
            "usearch": version("usearch"),  # others may have another format
        }
        name = sha256(json.dumps(head, sort_keys=True).encode()).hexdigest()[:32]
        folder = cache_folder() / name
        if (kept := self._kept(folder, head)) is not None:
            return kept
        size = size_text(self.method.num_entities * (numbers.shape[1] + 256))
        listener.note(f"building an index of about {size}, once; kept in {relative(folder)}")
        with atomic_folder(folder, lambda _: True) as new:
            index, file = build_index(self.method, listener), new / INDEX
            index.save(file)
            facts = {**head, "bytes": file.stat().st_size, "sha256": file_hash(file)}
            write_json(new / MANIFEST, facts)
        return index

    def _kept(self, folder: Path, head: Mapping[str, object]) -> EntityIndex | None:
        """The index in a folder; None if there is none, or if it is damaged."""
        file = folder / INDEX
        try:
            facts = read_json(folder / MANIFEST, head)
            if facts is None or facts.get("bytes") != file.stat().st_size:
                return None
            if facts.get("sha256") != file_hash(file):
                return None
        except (OSError, FileError):
            return None
        return load_index(file, self.method.num_entities)

    @torch.inference_mode()
    def _recall(self, index: EntityIndex, listener: Listener) -> tuple[float, int]:
        """The recall with the network of this run, measured once, and on how many queries."""
        network = file_hash(self.network)
        inputs = {"checkpoint": self.checkpoint, "network": network, "candidates": CANDIDATES}
        head = {"kind": KIND, "format": FORMAT, "inputs": inputs, "settings": SETTINGS}
        try:
            match read_json(self.recall_file, head):
                case {"recall": float(share), "queries": int(count)} if 0 <= share <= 1:
                    return share, count
        except FileError as error:
            listener.note(f"{one_line(error)}; it is measured again")
        listener.note("measuring the recall of the index, once")
        vectors = Vectors.of(self._sample())
        nothing = torch.zeros(1, self.method.num_entities, dtype=torch.bool)
        omitted = nothing.to(self.method.device).expand(len(vectors), -1)
        best = best_in_blocks(self.method, vectors, omitted, None, BEST)
        share = recall(best.rows, index.candidates(vectors, CANDIDATES))
        record = {**head, "recall": share, "queries": len(vectors)}
        try:
            write_json(self.recall_file, record)
        except FileError as error:
            listener.note(f"{one_line(error)}, so the recall will be measured again next time")
        return share, len(vectors)

    def _sample(self) -> list[Tensor]:
        """Vectors of valid queries, or of random questions with one edge, [disjuncts, n, d]."""
        valid = {n: g for n, g in self.queries().items() if len(g.pattern.free) == 1 and len(g)}
        few = list(capped(valid, -(-MEASURED // len(valid))).values()) if valid else []
        sample = [self._embed(group.pattern, group.constants, group.relations) for group in few]
        if sample:
            return sample
        entities = np.random.default_rng(0).integers(self.method.num_entities, size=(MEASURED, 1))
        return [self._embed(named_patterns()["1p"], entities, np.zeros_like(entities))]

    def _embed(self, pattern: Pattern, *columns: npt.NDArray[np.integer]) -> Tensor:
        ids = (torch.from_numpy(c.astype(np.int64)).to(self.method.device) for c in columns)
        return self.method.vectors(pattern, *ids)
