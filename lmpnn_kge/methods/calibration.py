"""Calibration: a map from scores to probabilities, and a measure of how reliable these are.

Probabilities are calibrated if, of the claims that are given the probability p, about p · 100 %
hold. Nothing here knows what is claimed: an edge, or an answer.

Nothing here needs torch before a calibration is called, so that reports can be made without it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import CalibrationError, short

if TYPE_CHECKING:
    from torch import Tensor

#: Claims that a step of a calibration rests on, at least.
LEAST = 100

#: Steps that a calibration starts from, at most; neighbours in the wrong order are then pooled.
STEPS = 5000

#: The largest number of a file; NaN and infinity are not below it.
LARGEST = sys.float_info.max

#: Bins of equal width that probabilities are measured in.
BINS = 10

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """A map from a score to a probability that never falls, linear between its points."""

    scores: tuple[float, ...]  # ascending
    probabilities: tuple[float, ...]  # not descending

    @classmethod
    def fit(
        cls,
        scores: npt.ArrayLike,
        holds: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        least: int = LEAST,
    ) -> Calibration:
        """Isotonic regression of scores [n] against whether each claim holds [n].

        A weight says how many claims one stands for. Each step rests on at least `least` claims.
        It is drawn a little towards the share of all that hold, and so never to 0 or 1.
        """
        values, truth, mass = _columns(scores, holds, weights)
        order = np.argsort(values, kind="stable")
        values, truth, mass = values[order], truth[order], mass[order]
        first = _steps(values, max(least, math.ceil(len(values) / STEPS)))
        heavy = np.add.reduceat(mass, first)
        middle = np.add.reduceat(values * mass, first) / heavy
        prior = (np.sum(truth * mass) + 0.5) / (np.sum(mass) + 1)
        share = (np.add.reduceat(truth * mass, first) + prior) / (heavy + 1)
        pools = list(_pooled(middle, share, heavy))
        return cls(tuple(score for score, _, _ in pools), tuple(p for _, p, _ in pools))

    def __call__(self, scores: Tensor) -> Tensor:
        """The probability of each score, in the shape of the scores."""
        import torch

        points = scores.new_tensor(self.scores)
        values = scores.new_tensor(self.probabilities)
        if len(points) == 1:
            return torch.ones_like(scores) * values
        right = torch.searchsorted(points, scores.contiguous()).clamp_(1, len(points) - 1)
        gaps = points.diff()  # 0 where points are too close for the precision of the scores
        slopes = torch.where(gaps > 0, values.diff() / gaps, 0.0)
        along = scores.clamp(points[0], points[-1]) - points[right - 1]
        return values[right - 1] + along * slopes[right - 1]

    def scaled(self, factor: float, most: float) -> Calibration:
        """The calibration with all probabilities multiplied, and at most `most`."""
        return Calibration(self.scores, tuple(min(most, p * factor) for p in self.probabilities))

    def to_json(self) -> dict[str, object]:
        return {"scores": list(self.scores), "probabilities": list(self.probabilities)}

    @classmethod
    def from_json(cls, content: object, source: str) -> Calibration:
        """Read what `to_json` returned; CalibrationError, which names the source, if it is not."""
        fields = mapping(content, ("scores", "probabilities"), source)
        scores = numbers(fields["scores"], source)
        probabilities = fractions(fields["probabilities"], source)
        if not scores or len(scores) != len(probabilities):
            sizes = f"{len(scores)} scores have {len(probabilities)} probabilities"
            raise CalibrationError(f"{source}: {sizes}")
        if np.any(np.diff(scores) <= 0) or np.any(np.diff(probabilities) < 0):
            raise CalibrationError(f"{source}: a calibration is not in ascending order")
        return cls(scores, probabilities)


@dataclass(frozen=True)
class Bin:
    """Claims that were given similar probabilities."""

    probability: float  # on average
    share: float  # of the claims that hold
    count: float  # the claims; weights may make it a fraction


@dataclass(frozen=True)
class Reliability:
    """How well probabilities agree with what holds, by bins of probability."""

    bins: tuple[Bin, ...]  # none is empty; in ascending order

    @classmethod
    def measure(
        cls,
        probabilities: npt.ArrayLike,
        holds: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        bins: int = BINS,
    ) -> Reliability:
        """Compare probabilities [n] with whether each claim holds [n], in bins of equal width."""
        values, truth, mass = _columns(probabilities, holds, weights)
        if values.min() < 0 or values.max() > 1:
            raise CalibrationError("probabilities must lie between 0 and 1")
        places = np.minimum((values * bins).astype(np.int64), bins - 1)
        counts, sums, holding = (
            np.bincount(places, column, bins) for column in (mass, values * mass, truth * mass)
        )
        filled = np.flatnonzero(counts)
        columns = sums[filled] / counts[filled], holding[filled] / counts[filled], counts[filled]
        return cls(tuple(Bin(*row) for row in zip(*(c.tolist() for c in columns), strict=True)))

    @property
    def count(self) -> float:
        """The number of claims."""
        return sum(bin_.count for bin_ in self.bins)

    @property
    def share(self) -> float:
        """The share of all claims that hold."""
        return sum(bin_.share * bin_.count for bin_ in self.bins) / self.count

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of probability and share."""
        gaps = (abs(bin_.probability - bin_.share) * bin_.count for bin_ in self.bins)
        return sum(gaps) / self.count

    def __str__(self) -> str:
        return (
            f"expected calibration error {self.error:.4f}; {100 * self.share:.1f} % of "
            f"{self.count:,.0f} hold"
        )

    def to_json(self) -> dict[str, object]:
        """Everything, with the error, which is computed again when it is read."""
        return {"error": self.error, "bins": [vars(bin_) for bin_ in self.bins]}

    @classmethod
    def from_json(cls, content: object, source: str) -> Reliability:
        """Read what `to_json` returned; CalibrationError, which names the source, if it is not."""
        rows = mapping(content, ("error", "bins"), source)["bins"]
        if not isinstance(rows, list) or not rows:
            raise CalibrationError(f"{source}: {short(rows)} is not a list of bins")
        names = ("probability", "share", "count")
        bins = [[mapping(row, names, source)[name] for name in names] for row in rows]
        for values in bins:
            fractions(values[:2], source)
            if numbers(values[2:], source)[0] <= 0:
                raise CalibrationError(f"{source}: a bin is empty")
        return cls(tuple(Bin(*map(float, values)) for values in bins))


def _columns(
    values: npt.ArrayLike, holds: npt.ArrayLike, weights: npt.ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    """Values, truth and weights of claims as arrays; CalibrationError if they cannot be used."""
    numbers = np.asarray(values, np.float64)
    truth = np.asarray(holds, np.float64)
    mass = np.ones_like(numbers) if weights is None else np.asarray(weights, np.float64)
    if not numbers.size:
        raise CalibrationError("there is nothing to compare probabilities with")
    if not np.isfinite(numbers).all():
        raise CalibrationError("a score is not a finite number")
    return numbers, truth, mass


def _steps(values: Floats, least: int) -> list[int]:
    """Where steps over sorted values begin: each has at least `least`; equal values stay together.

    If there are fewer than `least` values, there is one step.
    """
    new_value = np.flatnonzero(np.diff(values)) + 1
    first = [0]
    while first[-1] + 2 * least <= len(values):
        later = new_value[np.searchsorted(new_value, first[-1] + least) :]
        if not len(later) or later[0] + least > len(values):
            break
        first.append(int(later[0]))
    return first


def _pooled(middle: Floats, share: Floats, heavy: Floats) -> Iterator[tuple[float, float, float]]:
    """Neighbours whose shares fall are joined until no share falls (score, share, weight)."""
    pools: list[tuple[float, float, float]] = []
    for pool in zip(middle.tolist(), share.tolist(), heavy.tolist(), strict=True):
        while pools and pools[-1][1] >= pool[1]:
            (a, p, v), (b, q, w) = pools.pop(), pool
            pool = (a * v + b * w) / (v + w), (p * v + q * w) / (v + w), v + w
        pools.append(pool)
    return iter(pools)


def mapping(content: object, keys: tuple[str, ...], source: str) -> Mapping[str, Any]:
    """A mapping from a file that has exactly these keys."""
    if not isinstance(content, dict) or set(content) != set(keys):
        raise CalibrationError(f"{source}: {short(content)} does not have exactly {list(keys)}")
    return content


def numbers(content: object, source: str) -> tuple[float, ...]:
    """A list of finite numbers from a file."""
    if not isinstance(content, list) or not all(
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST
        for value in content
    ):
        raise CalibrationError(f"{source}: {short(content)} is not a list of numbers")
    return tuple(map(float, content))


def fractions(content: object, source: str) -> tuple[float, ...]:
    """A list of numbers between 0 and 1 from a file."""
    values = numbers(content, source)
    if any(not 0 <= value <= 1 for value in values):
        raise CalibrationError(f"{source}: {short(content)} is not between 0 and 1")
    return values
