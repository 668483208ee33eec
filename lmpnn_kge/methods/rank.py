"""Filtered ranks of the hard answers of queries, and their averages by query type.

The rank of a hard answer is 1 + the number of entities that are not answers and score higher + half
the number of those that score the same. Metrics are averaged over the hard answers of each query,
then over queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.errors import ConfigError, RunError
from lmpnn_kge.graph.answers import Int64s
from lmpnn_kge.graph.triples import spread_evenly
from lmpnn_kge.methods.bootstrap import mean_intervals
from lmpnn_kge.methods.lmpnn import aligned
from lmpnn_kge.methods.measure import by_query, measure, measure_tuples
from lmpnn_kge.methods.method import Method
from lmpnn_kge.methods.ranks import Floats, Ranks, TupleRanks
from lmpnn_kge.methods.results import Intervals, Results
from lmpnn_kge.methods.streamed import rank_streamed
from lmpnn_kge.methods.surplus import surplus
from lmpnn_kge.methods.tuple_ranks import tuple_ranks, with_every_answer_hard
from lmpnn_kge.methods.type_result import TypeResult
from lmpnn_kge.processes import current
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.work.listener import SILENT, Listener

#: Queries that a method answers at once.
BATCH = 1024

#: Scores that are held at once, and scores that are compared at once: as many as fit a CPU cache.
CHUNK_SCORES, CACHE_SCORES = 2**22, 2**18

#: Queries that are scored at once even if that is four chunks: a product with fewer is slower.
FEWEST = 16


def evaluate_split(
    method: Method,
    store: QueryStore,
    split: str,
    limit: int | None = None,
    listener: Listener = SILENT,
) -> Results:
    """Rank a split of a store, at most `limit` queries of each type; RunError if none can be."""
    return average(rank_split(method, store, split, limit, listener))


def rank_split(
    method: Method,
    store: QueryStore,
    split: str,
    limit: int | None = None,
    listener: Listener = SILENT,
    name: str = "",
) -> Ranks:
    """The ranks that `evaluate_split` averages, under the name of the method."""
    queries = _with_hard_answers(store, split, limit)
    ranked, tuples = _rank_all(method, queries, listener)
    values = {n: ranks for n, (ranks, _) in ranked.items()}
    scores = {n: scores for n, (_, scores) in ranked.items()}
    return Ranks(store, split, name, queries, values, scores, tuples)


def average(ranks: Ranks) -> Results:
    """The metrics of ranks, by query type."""
    return Results(ranks.split, _measure_all(ranks.queries, ranks.values, ranks.tuples))


def intervals(ranks: Ranks) -> Intervals:
    """The intervals of MRR, by type and average; those of types with tuples are not estimated."""
    single = {name: ranks.values[name] for name in ranks.values if name not in ranks.tuples}
    return mean_intervals(
        {name: by_query(1 / values, ranks.queries[name].hard) for name, values in single.items()}
    )


def _with_hard_answers(store: QueryStore, split: str, limit: int | None) -> dict[str, Queries]:
    """The queries of a split that can be ranked, at most `limit` of each type."""
    if limit is not None and limit < 1:
        raise ConfigError(f"limit must be at least 1, not {limit}")
    ranked = {name: group.ranked for name, group in store.queries(split).items()}
    queries = {name: group for name, group in ranked.items() if len(group)}
    if not queries:
        raise RunError(f"{store.folder} has no hard answers in {split!r}, nothing to rank")
    return queries if limit is None else capped(queries, limit)


def evaluate(
    method: Method,
    queries: Mapping[str, Queries],
    split: str = "test",
    listener: Listener = SILENT,
) -> Results:
    """The results of a method on queries by type; types without hard answers are left out."""
    ranked = {name: group for name, group in queries.items() if len(group.hard.values)}
    ranks, tuples = _rank_all(method, ranked, listener)
    values = {name: each for name, (each, _) in ranks.items()}
    return Results(split, _measure_all(ranked, values, tuples))


def _rank_all(
    method: Method, queries: Mapping[str, Queries], listener: Listener
) -> tuple[dict[str, tuple[Floats, Floats]], dict[str, TupleRanks]]:
    """The ranks and scores of all types, and those of types whose answers are tuples.

    Of such a type, each free variable is ranked by itself.
    """
    asked: dict[str, dict[str, Queries]] = {}
    for name, group in queries.items():
        free = group.pattern.free
        if len(free) == 1:
            asked[name] = {name: group}
        else:
            parts = zip(free, with_every_answer_hard(group), strict=True)
            asked[name] = {f"{name} {variable}": part for variable, part in parts}
    every = {part: group for parts in asked.values() for part, group in parts.items()}
    listener.begin("evaluating", sum(len(group.ranked) for group in every.values()))
    ranked = rank_types(method, every, listener)
    tuples = {
        name: tuple_ranks(queries[name], [ranked[part] for part in parts])
        for name, parts in asked.items()
        if len(parts) > 1
    }
    joint = {name: (ranks.joint, ranks.scores) for name, ranks in tuples.items()}
    return {name: joint[name] if name in joint else ranked[name] for name in queries}, tuples


def _measure_all(
    queries: Mapping[str, Queries],
    values: Mapping[str, Floats],
    tuples: Mapping[str, TupleRanks],
) -> dict[str, TypeResult]:
    return {
        name: measure_tuples(tuples[name], group.hard)
        if name in tuples
        else measure(values[name], group.hard)
        for name, group in queries.items()
    }


def rank_types(
    method: Method, queries: Mapping[str, Queries], listener: Listener = SILENT
) -> dict[str, tuple[Floats, Floats]]:
    """The rank and the score of every hard answer by type, in the order of `hard.values`.

    The processes of a job take turns with the batches. Each has those of all in the end.
    """
    processes = current()
    ranked = {name: np.zeros((2, len(group.hard.values))) for name, group in queries.items()}
    batches = [(name, rows) for name, group in queries.items() for rows in _batches(group)]
    buffer: list[Tensor] = []
    if method.streamed is not None:
        own_batches = batches[processes.rank :: processes.count]
        taken = [(name, queries[name], rows) for name, rows in own_batches]

        def advance(count: int) -> None:
            listener.advance(processes.count * count)  # the others have done as many

        for name, positions, *values in rank_streamed(method.streamed, taken, advance):
            ranked[name][:, positions] = values
        batches = []
    for number, (name, rows) in enumerate(batches):
        if processes.takes(number):
            for positions, *values in _rank_batch(method, queries[name], rows, buffer):
                ranked[name][:, positions] = values
        listener.advance(len(rows), partial(str, name))
    gathered = {}
    for name, own in ranked.items():
        every = processes.sum(torch.from_numpy(own.ravel())).numpy()
        gathered[name] = every[: own.shape[1]], every[own.shape[1] :]
    return gathered


def rank_queries(
    method: Method, queries: Queries, name: str = "", listener: Listener = SILENT
) -> Floats:
    """The rank of every hard answer, in the order of `queries.hard.values`."""
    return rank_types(method, {name: queries}, listener)[name][0]


def _batches(queries: Queries) -> Iterator[Int64s]:
    """The queries that have hard answers, in batches.

    Queries with equally many hard answers are ranked together, because `_rank` pads all queries of
    a chunk to the largest number.
    """
    counts = queries.hard.counts
    order = np.argsort(counts, kind="stable")[np.count_nonzero(counts == 0) :]
    yield from (order[start : start + BATCH] for start in range(0, len(order), BATCH))


def _rank_batch(
    method: Method, queries: Queries, batch: Int64s, buffer: list[Tensor]
) -> Iterator[tuple[Int64s, Floats, Floats]]:
    """The positions of the hard answers of a batch in `hard.values`, their ranks and their scores.

    They come in chunks. buffer keeps the memory of the largest chunk so far, which serves the
    others; the columns beyond the entities stay at −∞.
    """
    constants, relations = (
        torch.from_numpy(columns[batch].astype(np.int64)).to(method.device)
        for columns in (queries.constants, queries.relations)
    )
    scores_of = method.answer(queries.pattern, constants, relations)
    entities = method.num_entities
    chunk = max(CHUNK_SCORES, min(FEWEST * entities, 4 * CHUNK_SCORES))
    size = min(BATCH, max(1, chunk // entities))
    for first in range(0, len(batch), size):
        rows = batch[first : first + size]
        if not buffer or len(buffer[0]) < len(rows):
            like = torch.empty(0, device=method.device)
            buffer[:] = [aligned(len(rows), entities, like).fill_(-torch.inf)]
        padded = buffer[0][: len(rows)]
        out = padded[:, :entities]
        scores = scores_of(slice(first, first + size), out)
        yield _rank(padded if scores is out else scores, queries, rows)


@torch.inference_mode()
def _rank(scores: Tensor, queries: Queries, rows: Int64s) -> tuple[Int64s, Floats, Floats]:
    """The positions of the hard answers of some queries in `hard.values`, their ranks and scores.

    Overwrites the scores of these queries, [n, E] and any number of columns of −∞. These are below
    every threshold, so that they do not change a rank.
    """
    owners, positions = queries.hard.places(rows)
    easy_owners, easy_positions = queries.easy.places(rows)
    hard = queries.hard.values[positions].astype(np.int64)
    easy = queries.easy.values[easy_positions].astype(np.int64)
    column = positions - queries.hard.offsets[rows][owners]  # first, second … answer of a query
    owners_, column_, hard_, easy_owners_, easy_ = (
        torch.from_numpy(array).to(scores.device)
        for array in (owners, column, hard, easy_owners, easy)
    )
    # An answer's own score is the threshold that others must exceed to rank before it. Queries have
    # different numbers of answers, so the rows of thresholds are padded; the padding is not read.
    counts = np.bincount(owners)  # every query has at least one
    first = scores[torch.arange(len(rows), device=scores.device), hard_[column_ == 0]]
    thresholds = first[:, None].repeat(1, int(counts.max()))  # [n, k]
    thresholds[owners_, column_] = scores[owners_, hard_]
    # Answers must not rank before each other: with a score of −∞ all are below every threshold.
    scores[owners_, hard_] = -torch.inf
    scores[easy_owners_, easy_] = -torch.inf
    # Thresholds take several passes over the scores of their query. Done for a few queries at a
    # time, all passes but the first find these scores in the CPU's cache, and queries with few
    # thresholds, which come first, need no passes for the padding of others.
    size = max(1, CACHE_SCORES // scores.shape[1])
    net = torch.empty_like(thresholds, dtype=torch.int64)
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        most = int(counts[block].max())
        net[block, :most] = surplus(scores[block], thresholds[block, :most])
    # On the CPU before it becomes double, a type that not every device has.
    ahead, own = (values[owners_, column_].cpu().double().numpy() for values in (net, thresholds))
    return positions, 1 + (scores.shape[1] + ahead) / 2, own  # 1 + those above + half of the ties


def capped(queries: Mapping[str, Queries], most: int) -> dict[str, Queries]:
    """At most `most` queries of each type, evenly spread over all of them."""
    few = {}
    for name, group in queries.items():
        chosen = np.zeros(len(group), bool)
        chosen[spread_evenly(len(group), most)] = True
        few[name] = group if chosen.all() else group.select(chosen)
    return few
