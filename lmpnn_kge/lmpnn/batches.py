"""Training input: batches of one pattern each, drawn ahead of the step that uses them.

What a batch holds depends on the seed, the epoch and its place in the epoch alone, so a run can go
on anywhere as if it had never stopped.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lmpnn_kge.device import move
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.settings import Config

#: Batches that are ready before they are needed.
AHEAD = 4

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Queries of one pattern with an answer each, and noise."""

    pattern: Pattern
    constants: Tensor  # [n, c]
    relations: Tensor  # [n, r]
    positives: Tensor  # [n]
    negatives: Tensor | None  # [n, K], [K], or None for all entities
    known: Tensor | None  # [2, m], rows and columns of [n, K] where answers stand, or None

    def __len__(self) -> int:
        return len(self.positives)

    def to(self, device: torch.device) -> Batch:
        """On another device."""
        return replace(self, **moved_fields(self, device))


def moved_fields(batch: Any, device: torch.device) -> dict[str, Any]:
    """The tensors among the fields of a batch, on a device."""
    fields = vars(batch).items()
    return {name: move(value, device) for name, value in fields if isinstance(value, Tensor)}


@dataclass(frozen=True, eq=False)
class Input:
    """The training queries of a run and how they are drawn."""

    queries: Mapping[str, Queries]  # at least one, each with at least one answer
    entities: int
    config: Config

    def __len__(self) -> int:
        """Batches of an epoch."""
        size = self.config.batch_size
        return sum(-(-len(queries) // size) for queries in self.queries.values())

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from a place on: every query once, patterns mixed."""
        random = np.random.default_rng([self.config.seed, epoch])
        size = self.config.batch_size
        plan = [
            (queries, rows)
            for queries in self.queries.values()
            for rows in np.split(random.permutation(len(queries)), range(size, len(queries), size))
        ]
        for place in random.permutation(len(plan))[start:]:
            queries, rows = plan[place]
            seed = [self.config.seed, epoch, 1 + place]  # numpy does not tell [s, e, 0] from [s, e]
            yield self._draw(queries, rows, np.random.default_rng(seed))

    def _draw(self, queries: Queries, rows: Ints, random: np.random.Generator) -> Batch:
        rows = np.sort(rows)  # neighbours in memory
        first, last = queries.easy.offsets[rows], queries.easy.offsets[rows + 1]
        positives = queries.easy.values[random.integers(first, last)]
        noise = self._noise(len(rows), random)
        known = self._known(queries, rows, noise) if self.config.positives == "all" else None
        return Batch(
            queries.pattern,
            _tensor(queries.constants[rows]),
            _tensor(queries.relations[rows]),
            _tensor(positives),
            None if noise is None else _tensor(noise),
            None if known is None else _tensor(known),
        )

    def _noise(self, queries: int, random: np.random.Generator) -> Ints | None:
        count, kind = self.config.negative_count, self.config.negatives
        if kind == "independent":
            return random.integers(self.entities, size=(queries, count))
        if kind == "all" or count >= self.entities:
            return None
        return random.choice(self.entities, count, replace=False, shuffle=False)

    def _known(self, queries: Queries, rows: Ints, noise: Ints | None) -> Ints:
        """Where answers stand among the noise: places in rows, and columns."""
        owners, places = queries.easy.places(rows)
        answers = queries.easy.values[places].astype(np.int64)
        if noise is None:
            return np.stack([owners, answers])
        if noise.ndim == 2:
            first = self.entities * np.arange(len(rows))
            right = np.isin(first[:, None] + noise, first[owners] + answers)
            return np.stack(right.nonzero())
        columns = np.full(self.entities, -1)
        columns[noise] = np.arange(len(noise))
        there = columns[answers] >= 0
        return np.stack([owners[there], columns[answers[there]]])


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(array.astype(np.int64))


def prefetched(batches: Iterator[Batch], device: torch.device) -> Generator[Batch, None, None]:
    """The same batches on a device, drawn by a thread while the steps run."""
    ready: queue.Queue[Batch | BaseException | None] = queue.Queue(AHEAD)
    stopped = threading.Event()

    def put(item: Batch | BaseException | None) -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=0.1)
                break

    def fill() -> None:
        try:
            for batch in batches:
                put(batch.to(device))
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:  # raised again where the batch is asked for
            put(error)

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()
