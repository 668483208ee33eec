"""The metrics of one query type, from the ranks of its hard answers.

They are averaged over the hard answers of each query, then over queries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.methods.ranks import Floats, TupleRanks
from lmpnn_kge.methods.type_result import Metrics, TupleResult, TypeResult

HITS = (1, 3, 10)


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


def measure_tuples(ranks: TupleRanks, hard: Answers) -> TypeResult:
    """The metrics of a type whose answers are tuples; its MRR and Hits are the marginal ones."""
    marginal = [(1 / values, values, answers) for values, answers in ranks.marginal]
    having = np.stack([answers.counts > 0 for _, _, answers in marginal])  # [k, n]
    queries = int(having.any(axis=0).sum())
    farthest = ranks.entities.max(axis=1)
    geometric = np.exp(-np.log(ranks.entities).mean(axis=1))
    hits = {k: [(values <= k, a) for _, values, a in marginal] for k in HITS}
    return TypeResult(
        _over_variables([(reciprocal, a) for reciprocal, _, a in marginal]),
        {k: _over_variables(parts) for k, parts in hits.items()},
        int((hard.counts > 0).sum()),
        {},
        TupleResult(
            marginal_queries=queries,
            multiply=Metrics(
                _average(geometric, hard), {k: _average(farthest <= k, hard) for k in HITS}
            ),
            joint=Metrics(
                _average(1 / ranks.joint, hard), {k: _average(ranks.joint <= k, hard) for k in HITS}
            ),
        ),
    )


def _over_variables(parts: Sequence[tuple[npt.NDArray[np.float64 | np.bool_], Answers]]) -> float:
    """Average over a variable's answers, the variables with any, and the queries with any.

    It is 0 if there is no such query: the number of them is in the result.
    """
    means = np.stack([_means(values, answers) for values, answers in parts])  # [k, n]
    having = ~np.isnan(means)
    asked = having.any(axis=0)
    if not asked.any():
        return 0.0
    return float((np.nansum(means, axis=0)[asked] / having.sum(axis=0)[asked]).mean())


def _average(values: npt.NDArray[np.float64 | np.bool_], answers: Answers) -> float:
    """Average over the answers of each query that has any, then over those queries."""
    means = by_query(values, answers)
    return float(means.mean()) if len(means) else float("nan")


def by_query(values: npt.NDArray[np.float64 | np.bool_], answers: Answers) -> Floats:
    """The average over the answers of each query that has any."""
    return _means(values, answers)[answers.counts > 0]


def _means(values: npt.NDArray[np.float64 | np.bool_], answers: Answers) -> Floats:
    """The average over the answers of each query; not a number if it has none."""
    counts = answers.counts
    sums = np.bincount(answers.owners, values, minlength=len(answers))
    return np.divide(sums, counts, out=np.full(len(answers), np.nan), where=counts > 0)
