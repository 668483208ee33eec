"""Exact ranks by an entity table that is read in blocks, each of which meets all queries at once.

A rank counts the entities above an answer's own score, the threshold, so thresholds come first.
They are computed from the rows of the answers alone. That may round differently than the product
with a block, and then an entity with the same embedding as an answer would not tie with it.
Therefore the thresholds are compared with the scores of the answers in their blocks. Queries for
which any differs are ranked again, with these. All products have the shape of one with a whole
block, for which that hardly ever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.graph.answers import Answers, Int64s
from lmpnn_kge.methods.method import Streamed
from lmpnn_kge.methods.ranks import Floats
from lmpnn_kge.methods.surplus import surplus
from lmpnn_kge.methods.vectors import Vectors
from lmpnn_kge.queries.columns import Queries

#: Queries of any types that one product scores against a block, at least if there are as many. A
#: product for the few queries of each type would read the block once for each type.
CHUNK = 256

#: Numbers in the vectors of queries that are held for a pass over the table.
HELD = 2**26

#: Scores that are compared at once: as many as fit a CPU's cache.
CACHE_SCORES = 2**18


@dataclass(frozen=True, eq=False)
class Part:
    """Some queries of a type with their vectors."""

    name: str
    queries: Queries
    rows: Int64s
    vectors: Tensor  # [disjuncts, n, d]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Queries and entities, in the order of the entities."""

    entities: Int64s  # [m]
    queries: Tensor  # [m], on the device

    @classmethod
    def of(cls, entities: Int64s, queries: Int64s, device: torch.device) -> Pairs:
        order = np.argsort(entities, kind="stable")
        return cls(entities[order], torch.from_numpy(queries[order]).to(device))

    def within(self, span: slice) -> tuple[slice, Tensor, Tensor]:
        """The pairs with entities of a block: where, and their queries and places in the block."""
        first, last = np.searchsorted(self.entities, [span.start, span.stop])
        places = torch.from_numpy(self.entities[first:last] - span.start)
        part = slice(int(first), int(last))
        return part, self.queries[part], places.to(self.queries.device)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Queries of any types with their answers, and what a pass over the table has found.

    They are in the order of their numbers of hard answers, so that neighbours have about as many.
    """

    names: tuple[str, ...]  # of the parts
    parts: Int64s  # [m]: the part of each hard answer, in the order of `hard`
    positions: Int64s  # [m]: its position in the `hard.values` of that part, likewise
    counts: Int64s  # [n]: the number of hard answers of each query
    vectors: Vectors
    hard: Pairs
    columns: Tensor  # [m]: these number the hard answers of a query
    answers: Pairs  # all of them
    thresholds: Tensor  # [n, k], padded
    found: Tensor  # [m]: the scores of the hard answers in their blocks
    net: Tensor  # [n, k]: how many more entities are above a threshold than below

    @classmethod
    def of(cls, method: Streamed, parts: Sequence[Part]) -> Chunk:
        counts = np.concatenate([part.queries.hard.counts[part.rows] for part in parts])
        order = np.argsort(counts, kind="stable")
        places = np.argsort(order)
        hard = _answers([(part.queries.hard, part.rows) for part in parts], places)
        easy = _answers([(part.queries.easy, part.rows) for part in parts], places)
        hard = hard[:, np.argsort(hard[0], kind="stable")]
        entities, owners, numbers, types, positions = hard
        every = np.append(entities, easy[0]), np.append(owners, easy[1])
        device = method.device
        pairs, columns = Pairs.of(entities, owners, device), torch.from_numpy(numbers).to(device)
        vectors = Vectors.of([part.vectors for part in parts])
        vectors = vectors.ordered(torch.from_numpy(order).to(device))
        thresholds = vectors.stacked.new_zeros(len(order), int(counts.max()))
        thresholds[pairs.queries, columns] = _scores_of(method, vectors, pairs)
        return cls(
            tuple(part.name for part in parts),
            types,
            positions,
            counts[order],
            vectors,
            pairs,
            columns,
            Pairs.of(*every, device),
            thresholds,
            vectors.stacked.new_empty(len(entities)),
            torch.zeros(thresholds.shape, dtype=torch.int64, device=device),
        )

    def meet(self, span: slice, block: Tensor, buffer: Tensor) -> None:
        """Take a block of entities [rows, d] into account; those beyond the span do not count."""
        size = len(self.vectors.stacked) * len(block)
        scores = self.vectors.scores(block, buffer[:size].view(-1, len(block)))
        scores[:, span.stop - span.start :] = -torch.inf
        part, queries, places = self.hard.within(span)
        self.found[part] = scores[queries, places]
        _, queries, places = self.answers.within(span)
        scores[queries, places] = -torch.inf  # answers do not rank before each other
        size = max(1, CACHE_SCORES // len(block))
        for start in range(0, len(scores), size):
            rows = slice(start, start + size)
            most = self.counts[rows].max()
            net = surplus(scores[rows], self.thresholds[rows, :most])
            self.net[rows, :most] += net.long()

    def confirmed(self) -> bool:
        """Whether the thresholds were right; if not, the next pass has the right ones."""
        where = self.hard.queries, self.columns
        if torch.equal(self.thresholds[where], self.found):
            return True
        self.thresholds[where] = self.found
        self.net.zero_()
        return False

    def ranks(self, scored: int) -> Iterator[tuple[str, Int64s, Floats, Floats]]:
        """For each part, positions in `hard.values`, ranks and scores; scored is what `net` counts.

        Everything that does not count is below all thresholds.
        """
        above = (scored + self.net[self.hard.queries, self.columns].cpu().numpy()) / 2
        scores = self.found.cpu().double().numpy()
        for number, name in enumerate(self.names):
            own = self.parts == number
            yield name, self.positions[own], 1 + above[own], scores[own]  # half of the ties


def _answers(answers: Sequence[tuple[Answers, Int64s]], places: Int64s) -> Int64s:
    """Some rows of answers as columns: entity, query, which answer of it, part, and position.

    places [n] has the numbers of the queries of all parts.
    """
    columns, first = [], 0
    for part, (of_part, rows) in enumerate(answers):
        owners, positions = of_part.places(rows)
        entities = of_part.values[positions].astype(np.int64)
        numbers = positions - of_part.offsets[rows][owners]
        queries = places[first + owners]
        columns.append(
            np.stack([entities, queries, numbers, np.full_like(positions, part), positions])
        )
        first += len(rows)
    return np.concatenate(columns, 1)


def _scores_of(method: Streamed, vectors: Vectors, pairs: Pairs) -> Tensor:
    """The score of each pair, [m]."""
    distinct, places = np.unique(pairs.entities, return_inverse=True)
    rows = torch.from_numpy(distinct).split(method.block_rows)
    parts = [vectors.scores(_padded(method.unit(ids), method.block_rows)) for ids in rows]
    return torch.cat(parts, 1)[pairs.queries, torch.from_numpy(places).to(pairs.queries.device)]


def _padded(entities: Tensor, rows: int) -> Tensor:
    """As many rows as a whole block: products of equal shape round alike."""
    return F.pad(entities, (0, 0, 0, rows - len(entities))) if len(entities) < rows else entities


@torch.inference_mode()
def rank_streamed(
    method: Streamed,
    batches: Iterable[tuple[str, Queries, Int64s]],
    advance: Callable[[int], None],
) -> Iterator[tuple[str, Int64s, Floats, Floats]]:
    """Rank batches of queries by type: its name, and what `Chunk.ranks` returns.

    advance gets the number of queries that a block has brought forward by a whole pass.
    """
    held: list[Chunk] = []
    for parts in _chunks(method, batches):
        held.append(Chunk.of(method, parts))
        if sum(chunk.vectors.stacked.numel() for chunk in held) > HELD:
            yield from _ranked(method, held, advance)
            held = []
    yield from _ranked(method, held, advance)


def _chunks(
    method: Streamed, batches: Iterable[tuple[str, Queries, Int64s]]
) -> Iterator[list[Part]]:
    """The queries of all batches with their vectors, CHUNK or somewhat more at a time."""
    parts: list[Part] = []
    for name, queries, batch in batches:
        for start in range(0, len(batch), CHUNK):
            rows = batch[start : start + CHUNK]
            constants, relations = (
                torch.from_numpy(columns[rows].astype(np.int64)).to(method.device)
                for columns in (queries.constants, queries.relations)
            )
            vectors = method.vectors(queries.pattern, constants, relations)
            parts.append(Part(name, queries, rows, vectors))
            if sum(len(part.rows) for part in parts) >= CHUNK:
                yield parts
                parts = []
    if parts:
        yield parts


def _ranked(
    method: Streamed, held: list[Chunk], advance: Callable[[int], None]
) -> Iterator[tuple[str, Int64s, Floats, Floats]]:
    _pass(method, held, advance)
    wrong = [chunk for chunk in held if not chunk.confirmed()]
    _pass(method, wrong, lambda queries: advance(0))  # they were counted
    scored = -(-method.num_entities // method.block_rows) * method.block_rows
    for chunk in held:
        yield from chunk.ranks(scored)


def _pass(method: Streamed, chunks: list[Chunk], advance: Callable[[int], None]) -> None:
    if not chunks:
        return
    queries, done = sum(len(chunk.vectors) for chunk in chunks), 0
    most = max(len(chunk.vectors.stacked) for chunk in chunks)
    buffer = torch.empty(most * method.block_rows, device=method.device)
    for span, unit in method.blocks():
        block = _padded(unit, method.block_rows)
        for chunk in chunks:
            chunk.meet(span, block, buffer)
        now = queries * span.stop // method.num_entities
        advance(now - done)
        done = now
