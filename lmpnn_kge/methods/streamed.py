"""Exact ranks by an entity table that is read in blocks, each of which meets all queries at once.

A rank counts the entities above an answer's own score, the threshold, so thresholds come first.
They are computed from the rows of the answers alone. That may round differently than the product
with a block, and then an entity with the same embedding as an answer would not tie with it.
Therefore the thresholds are compared with the scores of the answers in their blocks. Queries for
which any differs are ranked again, with these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.graph.answers import Int64s
from lmpnn_kge.methods.lmpnn import LmpnnMethod, best_cosines
from lmpnn_kge.methods.ranks import Floats
from lmpnn_kge.methods.surplus import surplus
from lmpnn_kge.queries.columns import Queries

#: Queries that are scored together against a block.
CHUNK = 256

#: Numbers of answer embeddings that are held for a pass over the table, at most.
HELD = 2**26

#: Scores that are compared at once: as many as fit a CPU's cache.
CACHE_SCORES = 2**18


@dataclass(frozen=True, eq=False)
class Pairs:
    """Queries and entities, in the order of the entities."""

    entities: Int64s  # [m]
    queries: Tensor  # [m], on the device
    columns: Tensor  # [m], likewise

    @classmethod
    def of(cls, entities: Int64s, queries: Int64s, columns: Int64s, device: torch.device) -> Pairs:
        order = np.argsort(entities, kind="stable")
        tensors = (torch.from_numpy(array[order]).to(device) for array in (queries, columns))
        return cls(entities[order], *tensors)

    def within(self, span: slice) -> tuple[slice, Tensor, Tensor]:
        """The pairs with entities of a block: where, and their queries and places in the block."""
        first, last = np.searchsorted(self.entities, [span.start, span.stop])
        places = torch.from_numpy(self.entities[first:last] - span.start)
        part = slice(int(first), int(last))
        return part, self.queries[part], places.to(self.queries.device)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some queries of a type with their answers, and what a pass over the table has found."""

    positions: Int64s  # of the hard answers, in the order of `hard`
    counts: Int64s  # [n]: the number of hard answers of each query
    embeddings: Tensor  # [disjuncts, n, d]
    hard: Pairs  # columns number the hard answers of a query
    answers: Pairs  # all of them
    thresholds: Tensor  # [n, k], padded
    found: Tensor  # [m]: the scores of the hard answers in their blocks
    net: Tensor  # [n, k]: how many more entities are above a threshold than below

    @classmethod
    def of(cls, method: LmpnnMethod, embeddings: Tensor, queries: Queries, rows: Int64s) -> Chunk:
        owners, positions = queries.hard.places(rows)
        easy_owners, easy_positions = queries.easy.places(rows)
        hard = queries.hard.values[positions].astype(np.int64)
        easy = queries.easy.values[easy_positions].astype(np.int64)
        columns = positions - queries.hard.offsets[rows][owners]
        pairs = Pairs.of(hard, owners, columns, method.device)
        entities, queries_ = np.append(hard, easy), np.append(owners, easy_owners)
        shape = len(rows), int(columns.max()) + 1
        thresholds = embeddings.new_zeros(shape)
        thresholds[pairs.queries, pairs.columns] = _scores_of(method, embeddings, pairs)
        return cls(
            positions[np.argsort(hard, kind="stable")],
            np.bincount(owners),
            embeddings,
            pairs,
            Pairs.of(entities, queries_, queries_, method.device),
            thresholds,
            embeddings.new_empty(len(hard)),
            torch.zeros(shape, dtype=torch.int64, device=method.device),
        )

    def meet(self, span: slice, unit: Tensor, buffer: Tensor) -> None:
        """Take a block of entities [m, d] of length 1 into account."""
        out = buffer[: len(self.net) * len(unit)].view(len(self.net), len(unit))
        scores = best_cosines(self.embeddings, unit, out)
        part, queries, places = self.hard.within(span)
        self.found[part] = scores[queries, places]
        _, queries, places = self.answers.within(span)
        scores[queries, places] = -torch.inf  # answers do not rank before each other
        size = max(1, CACHE_SCORES // len(unit))
        for start in range(0, len(scores), size):
            rows = slice(start, start + size)
            most = self.counts[rows].max()  # of queries in the order of their numbers of answers
            net = surplus(scores[rows], self.thresholds[rows, :most])
            self.net[rows, :most] += net.long()

    def confirmed(self) -> bool:
        """Whether the thresholds were right; if not, the next pass has the right ones."""
        where = self.hard.queries, self.hard.columns
        if torch.equal(self.thresholds[where], self.found):
            return True
        self.thresholds[where] = self.found
        self.net.zero_()
        return False

    def ranks(self, entities: int) -> tuple[Int64s, Floats, Floats]:
        """The positions of the hard answers in `hard.values`, their ranks and their scores."""
        where = self.hard.queries, self.hard.columns
        above = (entities + self.net[where].cpu().numpy()) / 2  # with half of the ties
        return self.positions, 1 + above, self.found.cpu().double().numpy()


def _scores_of(method: LmpnnMethod, embeddings: Tensor, pairs: Pairs) -> Tensor:
    """The score of each pair, [m]."""
    distinct, places = np.unique(pairs.entities, return_inverse=True)
    parts = []
    for ids in torch.from_numpy(distinct).split(method.block_rows):
        # Products of the shape that those with blocks have round alike.
        block = F.pad(method.unit(ids), (0, 0, 0, method.block_rows - len(ids)))
        parts.append(best_cosines(embeddings, block))
    return torch.cat(parts, 1)[pairs.queries, torch.from_numpy(places).to(pairs.queries.device)]


@torch.inference_mode()
def rank_streamed(
    method: LmpnnMethod,
    batches: Iterable[tuple[str, Queries, Int64s]],
    advance: Callable[[int], None],
) -> Iterator[tuple[str, Int64s, Floats, Floats]]:
    """Rank batches of queries by type: its name, and what `Chunk.ranks` returns.

    advance gets the number of queries that a block has brought forward by a whole pass.
    """
    held: list[tuple[str, Chunk]] = []
    for name, queries, batch in batches:
        for start in range(0, len(batch), CHUNK):
            rows = batch[start : start + CHUNK]
            constants, relations = (
                torch.from_numpy(columns[rows].astype(np.int64)).to(method.device)
                for columns in (queries.constants, queries.relations)
            )
            embeddings = method.finite_embeddings(queries.pattern, constants, relations)
            held.append((name, Chunk.of(method, embeddings, queries, rows)))
        if sum(chunk.embeddings.numel() for _, chunk in held) > HELD:
            yield from _ranked(method, held, advance)
            held = []
    yield from _ranked(method, held, advance)


def _ranked(
    method: LmpnnMethod, held: list[tuple[str, Chunk]], advance: Callable[[int], None]
) -> Iterator[tuple[str, Int64s, Floats, Floats]]:
    chunks = [chunk for _, chunk in held]
    _pass(method, chunks, advance)
    wrong = [chunk for chunk in chunks if not chunk.confirmed()]
    _pass(method, wrong, lambda queries: advance(0))  # they were counted
    for name, chunk in held:
        yield name, *chunk.ranks(method.num_entities)


def _pass(method: LmpnnMethod, chunks: list[Chunk], advance: Callable[[int], None]) -> None:
    if not chunks:
        return
    queries, done = sum(len(chunk.net) for chunk in chunks), 0
    buffer = torch.empty(0, device=method.device)
    for span, unit in method.blocks():
        if len(buffer) < CHUNK * len(unit):
            buffer = torch.empty(CHUNK * len(unit), device=method.device)
        for chunk in chunks:
            chunk.meet(span, unit, buffer)
        now = queries * span.stop // method.num_entities
        advance(now - done)
        done = now
