"""Filtered ranks of the hard answers of queries, and their averages by query type.

The rank of a hard answer is 1 + the number of entities that are not answers and score higher + half
the number of those that score the same. Metrics are averaged over the hard answers of each query,
then over queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lmpnn_kge.errors import RunError
from lmpnn_kge.graph.answers import Answers, Int64s
from lmpnn_kge.graph.triples import spread_evenly
from lmpnn_kge.listener import SILENT, Listener
from lmpnn_kge.methods.method import Method
from lmpnn_kge.methods.ranks import Floats, Ranks
from lmpnn_kge.methods.results import Results, TypeResult
from lmpnn_kge.methods.surplus import surplus
from lmpnn_kge.processes import current
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.store import QueryStore

#: Queries that a method answers at once.
BATCH = 1024

#: Scores that are held at once, and scores that are compared at once: as many as fit a CPU cache.
CHUNK_SCORES, CACHE_SCORES = 2**22, 2**20

#: Queries that are scored at once even if that is four chunks: a product with fewer is slower.
FEWEST = 16

#: The length of a row of scores is a multiple of this: one that is not, as the number of entities
#: usually is, makes the product that writes it almost twice as slow on a CPU.
ALIGNED = 16

HITS = (1, 3, 10)


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
    listener.begin("evaluating", sum(map(len, queries.values())))
    ranked = rank_types(method, queries, listener)
    values = {n: ranks for n, (ranks, _) in ranked.items()}
    return Ranks(store, split, name, queries, values, {n: s for n, (_, s) in ranked.items()})


def average(ranks: Ranks) -> Results:
    """The metrics of ranks, by query type."""
    hard = {name: queries.hard for name, queries in ranks.queries.items()}
    types = {name: measure(values, hard[name]) for name, values in ranks.values.items()}
    return Results(ranks.split, types)


def _with_hard_answers(store: QueryStore, split: str, limit: int | None) -> dict[str, Queries]:
    """The queries of a split that can be ranked, at most `limit` of each type."""
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
    listener.begin("evaluating", sum(len(group.ranked) for group in ranked.values()))
    ranks = rank_types(method, ranked, listener)
    return Results(split, {name: measure(ranks[name][0], ranked[name].hard) for name in ranked})


def measure(ranks: Floats, hard: Answers) -> TypeResult:
    """The metrics of one query type, from the rank of every hard answer."""
    by_missing = {}
    for cost in () if hard.costs is None else np.unique(hard.costs).tolist():
        chosen = hard.costs == cost
        mrr = _average(1 / ranks[chosen], hard.only(chosen))
        by_missing[cost] = mrr, int(chosen.sum())
    return TypeResult(
        _average(1 / ranks, hard),
        {k: _average(ranks <= k, hard) for k in HITS},
        int((hard.counts > 0).sum()),
        by_missing,
    )


def _average(values: npt.NDArray[np.float64 | np.bool_], answers: Answers) -> float:
    """Average over the answers of each query that has any, then over those queries."""
    counts = answers.counts
    sums = np.bincount(answers.owners, values, minlength=len(answers))
    having = counts > 0
    return float((sums[having] / counts[having]).mean()) if having.any() else float("nan")


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
            width = -(-entities // ALIGNED) * ALIGNED
            buffer[:] = [torch.full((len(rows), width), -torch.inf, device=method.device)]
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
    first = scores[torch.arange(len(rows), device=scores.device), hard_[column_ == 0]]
    thresholds = first[:, None].repeat(1, int(column.max()) + 1)  # [n, k]
    thresholds[owners_, column_] = scores[owners_, hard_]
    # Answers must not rank before each other: with a score of −∞ all are below every threshold.
    scores[owners_, hard_] = -torch.inf
    scores[easy_owners_, easy_] = -torch.inf
    # Thresholds take several passes over the scores of their query. Done for a few queries at a
    # time, all passes but the first find these scores in the CPU's cache.
    size = max(1, CACHE_SCORES // scores.shape[1])
    net = torch.cat([
        surplus(*block)
        for block in zip(scores.split(size), thresholds.split(size), strict=True)
    ])  # fmt: skip
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
