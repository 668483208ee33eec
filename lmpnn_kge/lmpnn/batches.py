"""Training input: batches of one pattern each, drawn by a thread before the step that uses them.

The content of a batch depends only on the seed, the epoch and its number in the epoch. A run that
was stopped can therefore resume at any batch and get the same ones as without the stop. Processes
that share the work draw the same batch, and each makes only its own parts of it.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lmpnn_kge.backbones.placing import SINGLE, fetch
from lmpnn_kge.device import moved_fields
from lmpnn_kge.errors import RunError
from lmpnn_kge.graph.memory import size_text
from lmpnn_kge.processes import Processes, current
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.settings.kinds import TrainSettings

#: Batches that the thread keeps ready.
AHEAD = 4

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Queries of one pattern, an answer of each, and negatives (the noise of the loss).

    It is a whole batch or a part of one. A part for which no query is left repeats one and has the
    share 0, so that the same weights have gradients in all parts.
    """

    pattern: Pattern
    constants: Tensor  # [n, c]
    relations: Tensor  # [n, r]
    positives: Tensor  # [n]
    negatives: Tensor | None  # [n, K], [K], or None for all entities
    known: Tensor | None  # [2, m], rows and columns of the answers among the negatives [n, K]
    share: float = 1.0  # of the queries of the whole batch
    rows: Tensor | None = None  # [m, d] of the entity table, which all ids then refer to

    def __len__(self) -> int:
        return len(self.positives)

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""
        return replace(self, **moved_fields(self, device))

    def with_rows(self, table: Tensor) -> Batch:
        """The same batch with the rows that it needs of a table [E, d] in the host's memory."""
        assert self.negatives is not None
        columns = self.constants, self.positives, self.negatives
        flat = torch.cat([column.flatten() for column in columns])
        ids, places = flat.unique(return_inverse=True)
        parts = places.split([column.numel() for column in columns])
        constants, positives, negatives = (
            part.view_as(column) for part, column in zip(parts, columns, strict=True)
        )
        return replace(
            self,
            constants=constants,
            positives=positives,
            negatives=negatives,
            rows=fetch(table, ids),
        )


#: The parts of a batch that one process works on: all of it, in one part, unless it is divided.
Parts = tuple[Batch, ...]


@dataclass(frozen=True, eq=False)
class Input:
    """The training queries of a run, and the settings by which batches are drawn."""

    queries: Mapping[str, Queries]  # at least one, each with at least one answer
    entities: int
    config: TrainSettings
    processes: Processes = field(default_factory=current)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        size = self.config.batch_size
        return sum(-(-len(queries) // size) for queries in self.queries.values())

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Parts]:
        """The batches of an epoch from number `start` on: every query once, patterns mixed."""
        random = np.random.default_rng([self.config.seed, epoch])
        size = self.config.batch_size
        plan = [
            (queries, rows)
            for queries in self.queries.values()
            for rows in np.split(random.permutation(len(queries)), range(size, len(queries), size))
        ]
        for number in random.permutation(len(plan))[start:]:
            queries, rows = plan[number]
            seed = [self.config.seed, epoch, 1 + number]  # to numpy, [s, e, 0] and [s, e] are equal
            yield self._draw(queries, rows, np.random.default_rng(seed))

    def _draw(self, queries: Queries, rows: Ints, random: np.random.Generator) -> Parts:
        rows = np.sort(rows)  # in the order of memory, which reads faster
        first, last = queries.easy.offsets[rows], queries.easy.offsets[rows + 1]
        positives = random.integers(first, last)
        noise = self._noise(len(rows), random)
        parts = []
        for span in self.processes.spans(len(rows), self.config.parts):
            share = (span.stop - span.start) / len(rows)
            part = span if share else slice(1)
            own = noise if noise is None or noise.ndim == 1 else noise[part]
            batch = self._part(queries, rows[part], positives[part], own)
            parts.append(replace(batch, share=share))
        return tuple(parts)

    def _part(self, queries: Queries, rows: Ints, positives: Ints, noise: Ints | None) -> Batch:
        known = self._known(queries, rows, noise) if self.config.positives == "all" else None
        return Batch(
            queries.pattern,
            _tensor(queries.constants[rows]),
            _tensor(queries.relations[rows]),
            _tensor(queries.easy.values[positives]),
            None if noise is None else _tensor(noise),
            None if known is None else _tensor(known),
        )

    def _noise(self, queries: int, random: np.random.Generator) -> Ints | None:
        """Negatives [n, K] or [K], by the settings; None stands for all entities."""
        count, mode = self.config.negative_count, self.config.negatives
        if mode == "independent":
            return random.integers(self.entities, size=(queries, count))
        if mode == "all" or count >= self.entities:
            return None
        return random.choice(self.entities, count, replace=False, shuffle=False)

    def _known(self, queries: Queries, rows: Ints, noise: Ints | None) -> Ints:
        """The answers among the negatives, as rows and columns of [n, K]: [2, m]."""
        owners, positions = queries.easy.places(rows)
        answers = queries.easy.values[positions].astype(np.int64)
        if noise is None:  # the column of an entity is the entity itself
            return np.stack([owners, answers])
        if noise.ndim == 2:  # row and entity in one number, so that isin compares within rows
            first = self.entities * np.arange(len(rows))
            is_answer = np.isin(first[:, None] + noise, first[owners] + answers)
            return np.stack(is_answer.nonzero())
        order = np.argsort(noise)
        columns = order[np.searchsorted(noise, answers, sorter=order).clip(max=len(noise) - 1)]
        drawn = noise[columns] == answers
        return np.stack([owners[drawn], columns[drawn]])


def check_batches(batches: Input, dim: int, limit: int) -> None:
    """RunError if a device that holds at most `limit` bytes of the entity table cannot train.

    dim is the width of the table, which is larger than the limit.
    """
    config = batches.config
    if config.negatives == "all" or config.negative_count >= batches.entities:
        raise RunError(
            "negatives=all needs the whole entity table, which is larger than --table-memory; use "
            "negatives=shared and a negative_count below the number of entities"
        )
    constants = max(queries.constants.shape[1] for queries in batches.queries.values())
    shared = config.negatives == "shared"
    per_query = constants + 1 + (0 if shared else config.negative_count)
    rows = config.batch_size * per_query + (config.negative_count if shared else 0)
    # Besides those that are ready, a batch waits for its turn, and that of the step has copies.
    needed = (AHEAD + 4) * rows * dim * SINGLE
    if needed > limit:
        raise RunError(
            f"the batches at hand need up to {size_text(needed)} of the entity table, but "
            f"--table-memory is {size_text(limit)}; allow more, or lower batch_size or "
            "negative_count"
        )


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(array.astype(np.int64))


def prefetched(batches: Iterator[Parts], device: torch.device) -> Generator[Parts, None, None]:
    """The same batches on a device, drawn by a thread while training steps run.

    Closing the generator stops the thread. An error of the thread is raised by the next batch.
    """
    ready: queue.Queue[Parts | BaseException | None] = queue.Queue(AHEAD)
    stopped = threading.Event()

    def put(item: Parts | BaseException | None) -> None:
        # Not a plain put: nobody takes from a full queue any more once the consumer has stopped.
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=0.1)
                break

    def fill() -> None:
        try:
            for parts in batches:
                put(tuple(part.to(device) for part in parts))
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:  # raised again in the consumer
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
