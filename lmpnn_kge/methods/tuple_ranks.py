"""Ranks of answers that are tuples, from the ranks of their entities: the metrics of EFO-k.

A method scores the entities of each free variable by themselves. From these marginal scores, the
EFO-k benchmark (Yin et al. 2023, arXiv 2307.13701) measures three things:

- *marginal*: the rank of an entity among those of its variable, filtered by all entities that are
  in an answer at this place. It is averaged over the entities that are in no easy tuple, then over
  the variables that have any, then over the queries that have any.
- *multiply*: a tuple is a hit at n if each of its entities is one by its filtered rank. Its
  reciprocal rank is the geometric mean of those of its entities.
- *joint*: the rank of a tuple among all tuples, filtered by the other answers. Tuples are ordered
  by the sum of the unfiltered ranks of their entities; if sums are equal, by the sum without the
  last entity, and so on.

Multiply and joint are averaged over the hard tuples of each query, then over queries. As for one
variable, ties count half.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lmpnn_kge.graph.answers import Answers, Int32s, Int64s, answer_order
from lmpnn_kge.methods.ranks import Floats, TupleRanks
from lmpnn_kge.queries.columns import Queries


def with_every_answer_hard(queries: Queries) -> list[Queries]:
    """For each free variable, queries whose hard answers are all entities in an answer.

    The filtered rank of an entity is the same whether it is easy or hard, and tuples need both.
    """
    every = queries.easy.merged(queries.hard)
    none = Answers.none(len(queries))
    return [
        replace(queries, pattern=queries.pattern.about(variable), easy=none, hard=every.at(place))
        for place, variable in enumerate(queries.pattern.free)
    ]


def tuple_ranks(queries: Queries, ranked: list[tuple[Floats, Floats]]) -> TupleRanks:
    """The ranks of tuples, from ranks and scores of what `with_every_answer_hard` asks for."""
    tuples = queries.easy.merged(queries.hard)
    filtered, unfiltered, scores = [], [], []  # of all tuples, for each variable
    marginal = []
    parts = zip(with_every_answer_hard(queries), queries.marginals, ranked, strict=True)
    for place, (every, about, (ranks, own_scores)) in enumerate(parts):
        positions = _positions(every.hard, tuples.owners, tuples.values[:, place])
        filtered.append(ranks[positions])
        unfiltered.append((ranks - 1 + _ahead(every.hard.owners, own_scores))[positions])
        scores.append(own_scores[positions])
        own = _positions(every.hard, about.hard.owners, about.hard.values)
        marginal.append((ranks[own], about.hard))
    order = tuple_position(np.stack(unfiltered, axis=1))
    # Other answers do not count. With ties, a tuple could have more of them before it than tuples.
    joint = np.maximum(1, 1 + order - _ahead(tuples.owners, -order))
    sides = queries.easy, queries.hard
    owners = np.concatenate([side.owners for side in sides])
    values = np.concatenate([side.values for side in sides])
    is_hard = answer_order(owners, values) >= len(queries.easy.values)
    return TupleRanks(
        tuple(marginal),
        np.stack(filtered, axis=1)[is_hard],
        joint[is_hard],
        np.sum(scores, axis=0)[is_hard],
    )


def tuple_position(ranks: Floats) -> Floats:
    """The number of tuples before those whose entities have ranks [m, k], which count from 0.

    All tuples of ranks, ordered by their sum, are numbered by Σ_j C(r_1 + … + r_j + j − 1, j). For
    k = 2 this is Cantor's pairing s (s + 1) / 2 + r_1 with s = r_1 + r_2, as in the benchmark.
    """
    position = np.zeros(len(ranks))
    for place, total in enumerate(ranks.cumsum(axis=1).T, 1):
        terms = [total + step for step in range(place)]
        position += np.prod(terms, axis=0) / math.factorial(place)
    return position


def _ahead(owners: Int64s, scores: Floats) -> Floats:
    """For each answer, how many others of its query have a higher score, plus half the ties."""
    order = np.lexsort((scores, owners))
    sorted_owners, sorted_scores = owners[order], scores[order]
    starts = np.ones(len(order), bool)  # of runs of equal scores
    starts[1:] = (sorted_owners[1:] != sorted_owners[:-1]) | (
        sorted_scores[1:] != sorted_scores[:-1]
    )
    run = np.cumsum(starts) - 1
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(order))
    end = np.searchsorted(sorted_owners, sorted_owners, side="right")
    ahead = np.empty(len(order))
    ahead[order] = end - last[run] + (last - first - 1)[run] / 2
    return ahead


def _positions(among: Answers, owners: Int64s, entities: Int32s) -> Int64s:
    """Where the answers of queries are among others, which have all of them."""
    width = 1 + int(among.values.max(initial=0))
    keys = among.owners * width + among.values
    return np.searchsorted(keys, owners * width + entities)
