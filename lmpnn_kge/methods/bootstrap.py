"""Bootstrap over queries: how far a mean, or the difference of two, depends on the sample.

The queries of every type are drawn again with replacement, and the mean is taken each time. The
interval holds the middle 95 % of these means. For the difference of two methods, the same queries
are drawn for both. An average over types is drawn type by type, as the queries were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lmpnn_kge.methods.ranks import Floats
from lmpnn_kge.methods.results import AVERAGES

#: Samples that are drawn; the ends of an interval then vary by less than 1 % of its width.
RESAMPLES = 10_000

#: Samples for the interval of a mean by itself, which is shown with fewer digits.
FEWER_RESAMPLES = 1_000

#: The share of the means or differences that an interval holds.
LEVEL = 0.95

#: Values that are drawn at once.
CHUNK = 2**20


@dataclass(frozen=True)
class Difference:
    """The difference of two means over the same queries, and its interval."""

    first: float
    second: float
    low: float  # of second − first
    high: float
    queries: int

    @property
    def value(self) -> float:
        return self.second - self.first

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def compare_paired(
    first: Mapping[str, Floats],
    second: Mapping[str, Floats],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Difference]:
    """The differences by query type, then of A_P and A_N if all their types are there.

    first and second have the values of the same queries, in the same order, by type.
    """
    found = {}
    differences = {name: second[name] - values for name, values in first.items()}
    for name, interval in mean_intervals(differences, resamples, seed).items():
        names = AVERAGES.get(name, (name,))
        one, other = (float(np.mean([side[n].mean() for n in names])) for side in (first, second))
        found[name] = Difference(one, other, *interval, sum(len(first[n]) for n in names))
    return found


def mean_intervals(
    values: Mapping[str, Floats], resamples: int = FEWER_RESAMPLES, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """The interval of the mean of every type, then of A_P and A_N if all their types are there.

    values has those of the queries of each type.
    """
    streams = np.random.SeedSequence(seed).spawn(len(values))
    drawn = {
        name: resampled_means(own, resamples, stream)
        for (name, own), stream in zip(values.items(), streams, strict=True)
    }
    for average, names in AVERAGES.items():
        if all(name in drawn for name in names):
            drawn[average] = np.mean([drawn[name] for name in names], axis=0)
    return {name: _interval(means) for name, means in drawn.items()}


def resampled_means(values: Floats, resamples: int, seed: np.random.SeedSequence) -> Floats:
    """The means of samples with replacement, as many and as large as asked for, [resamples]."""
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    size = max(1, CHUNK // len(values))
    for start in range(0, resamples, size):
        count = min(size, resamples - start)
        chosen = generator.integers(len(values), size=(count, len(values)), dtype=np.int32)
        means[start : start + count] = values[chosen].mean(axis=1)
    return means


def _interval(means: Floats) -> tuple[float, float]:
    outside = (1 - LEVEL) / 2
    low, high = np.quantile(means, [outside, 1 - outside])
    return float(low), float(high)
