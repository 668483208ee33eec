"""How well the number of answers to a query is predicted.

What is predicted is the number of all answers on the full graph: easy and hard. The error of a type
is the mean absolute percentage error (MAPE) over its queries, mean(|predicted − actual| / actual).
The correlation is Spearman's: that of the ranks of predicted and actual numbers, where ties share
the average of their ranks.

Nothing here needs torch, so that reports can be made without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import CalibrationError, short
from lmpnn_kge.methods.calibration import fractions, mapping, numbers
from lmpnn_kge.query.patterns import NEGATIVE, POSITIVE

Floats = npt.NDArray[np.float64]

#: What is compared with the actual number: the prediction of the method, and two baselines, the
#: number of known answers and the median of the actual numbers of the type.
PREDICTED, KNOWN, MEDIAN = ROWS = ("predicted", "known", "median")


@dataclass(frozen=True)
class CountResult:
    """How close some numbers are to the actual numbers of answers."""

    error: float  # MAPE, as a fraction
    correlation: float | None  # None if one of both sides has only one value

    @classmethod
    def measure(cls, predicted: npt.ArrayLike, actual: npt.ArrayLike) -> CountResult:
        """Compare numbers [n] with the actual ones [n], all of which are above 0."""
        guess, truth = np.asarray(predicted, np.float64), np.asarray(actual, np.float64)
        return cls(float((np.abs(guess - truth) / truth).mean()), spearman(guess, truth))


@dataclass(frozen=True)
class Counting:
    """Predicted numbers of answers and the baselines, by type; `ROWS` has their names."""

    queries: Mapping[str, int]
    rows: Mapping[str, Mapping[str, CountResult]]

    @classmethod
    def measure(cls, numbers: Mapping[str, Mapping[str, Floats]]) -> Counting:
        """The quality of numbers [n] by row, then by type; "actual" is what they should be."""
        actual = numbers["actual"]
        medians = {name: np.full(len(n), np.median(n)) for name, n in actual.items()}
        compared = {PREDICTED: numbers[PREDICTED], KNOWN: numbers.get(KNOWN), MEDIAN: medians}
        rows = {
            row: {name: CountResult.measure(values[name], n) for name, n in actual.items()}
            for row, values in compared.items()
            if values is not None
        }
        return cls({name: len(n) for name, n in actual.items()}, rows)

    @property
    def errors(self) -> dict[str, dict[str, float]]:
        """MAPE by row, then by type and average."""
        return self._table(lambda result: result.error)

    @property
    def correlations(self) -> dict[str, dict[str, float]]:
        """Spearman's correlation likewise; rows and types that have none are left out."""
        table = self._table(lambda result: result.correlation)
        return {row: values for row, values in table.items() if values}

    def _table(
        self, value_of: Callable[[CountResult], float | None]
    ) -> dict[str, dict[str, float]]:
        table = {}
        for row, results in self.rows.items():
            by_type = {name: value_of(result) for name, result in results.items()}
            values = {name: value for name, value in by_type.items() if value is not None}
            for average, names in (("A_P", POSITIVE), ("A_N", NEGATIVE)):
                if all(name in values for name in names):
                    values[average] = sum(values[name] for name in names) / len(names)
            table[row] = values
        return table

    def to_json(self) -> dict[str, object]:
        rows = {
            row: {name: vars(result) for name, result in results.items()}
            for row, results in self.rows.items()
        }
        return {"queries": dict(self.queries), **rows}

    @classmethod
    def from_json(cls, content: object, source: str) -> Counting:
        """Read what `to_json` returned; CalibrationError, which names the source, if it is not."""
        given = content if isinstance(content, dict) else {}
        present = [row for row in ROWS if row in given]
        fields = mapping(content, ("queries", *present), source)
        queries = fields["queries"]
        if PREDICTED not in present or not isinstance(queries, dict) or not queries:
            raise CalibrationError(f"{source}: {short(content)} does not compare numbers")
        if not all(
            isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in queries.values()
        ):
            raise CalibrationError(f"{source}: {short(queries)} are not numbers of queries")
        types = tuple(queries)
        return cls(
            queries,
            {
                row: {
                    name: _read(result, source)
                    for name, result in mapping(fields[row], types, source).items()
                }
                for row in present
            },
        )


def _read(content: object, source: str) -> CountResult:
    fields = mapping(content, ("error", "correlation"), source)
    (error,) = numbers([fields["error"]], source)
    correlation = fields["correlation"]
    if correlation is not None:
        fractions([abs(value) for value in numbers([correlation], source)], source)
    if error < 0:
        raise CalibrationError(f"{source}: an error is below 0")
    return CountResult(error, correlation)


def spearman(first: Floats, second: Floats) -> float | None:
    """The correlation of the ranks of two rows of numbers [n]; None if one row has only one."""
    one, other = (ranks - ranks.mean() for ranks in map(_ranks, (first, second)))
    length = np.sqrt((one @ one) * (other @ other))
    return float(np.clip(one @ other / length, -1.0, 1.0)) if length > 0 else None


def _ranks(values: Floats) -> Floats:
    """The rank of each value, from 1; equal values share the average of their ranks."""
    _, positions, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[positions]
