"""The results of an evaluation as a value: MRR and Hits by query type, as JSON and as text.

Nothing here needs torch, so that reports can be made without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmpnn_kge.errors import CalibrationError, RunError, one_line, short
from lmpnn_kge.methods.calibration import Reliability
from lmpnn_kge.methods.counting import Counting
from lmpnn_kge.methods.origin import Origin
from lmpnn_kge.methods.text_table import Table, percent
from lmpnn_kge.methods.type_result import Metrics, TypeResult, fraction, mapping
from lmpnn_kge.notebook import data_frame, html_paragraphs, html_table
from lmpnn_kge.query.patterns import NEGATIVE, POSITIVE, ordered

#: The averages of the paper, with the types that each is taken over.
AVERAGES = {"A_P": POSITIVE, "A_N": NEGATIVE}

#: Fractions by query type or average.
Values = Mapping[str, float]

#: The ends of 95 % intervals, likewise.
Intervals = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, repr=False)
class Results:
    """The metrics of a split by query type."""

    split: str
    types: Mapping[str, TypeResult]
    reliability: Reliability | None = None  # of the probabilities of answers, if there are any
    origin: Origin | None = None  # files of older versions do not have it
    intervals: Intervals | None = None  # of MRR, by type and average; likewise
    counting: Counting | None = None  # of the numbers of answers, if they are predicted

    @property
    def positive(self) -> float | None:
        """A_P, the mean MRR of the types without negation; None unless all nine are present."""
        return self._average(POSITIVE)

    @property
    def negative(self) -> float | None:
        """A_N, the mean MRR of the types with negation; None unless all five are present."""
        return self._average(NEGATIVE)

    def _average(self, names: Sequence[str]) -> float | None:
        if any(name not in self.types for name in names):
            return None
        return sum(self.types[name].mrr for name in names) / len(names)

    @property
    def mean(self) -> float:
        """The mean MRR of all types, which training maximises on the validation queries."""
        return sum(result.mrr for result in self.types.values()) / len(self.types)

    @property
    def queries(self) -> int:
        """The number of queries of all types."""
        return sum(self.counts.values())

    @property
    def counts(self) -> dict[str, int]:
        """The number of queries by type."""
        return {name: result.queries for name, result in self.types.items()}

    @property
    def mrr(self) -> dict[str, float]:
        """MRR by type, then A_P and A_N unless they are None."""
        averages = {"A_P": self.positive, "A_N": self.negative}
        return {name: result.mrr for name, result in self.types.items()} | {
            name: value for name, value in averages.items() if value is not None
        }

    @property
    def margins(self) -> dict[str, float]:
        """Half the width of the interval of each MRR; empty if there are no intervals."""
        return {name: (high - low) / 2 for name, (low, high) in (self.intervals or {}).items()}

    @property
    def headline(self) -> dict[str, float]:
        """A_P and A_N if they are known, else the MRR of each type: what fits on a line."""
        return {name: v for name, v in self.mrr.items() if name in AVERAGES} or self.mrr

    @property
    def hits(self) -> dict[int, dict[str, float]]:
        """Hits@k by k, then by type."""
        return _turned({name: result.hits for name, result in self.types.items()})

    @property
    def missing(self) -> dict[int, dict[str, float]]:
        """MRR by the number of missing edges that an answer needs, then by type."""
        by_type = {
            name: {edges: mrr for edges, (mrr, _) in result.by_missing.items()}
            for name, result in self.types.items()
        }
        return _turned(by_type)

    @property
    def tuples(self) -> dict[str, dict[str, float]]:
        """Multiply and joint MRR and Hits, each by type, of the types whose answers are tuples."""
        rows: dict[str, dict[str, float]] = {}
        for name, result in self.types.items():
            for kind in ("multiply", "joint") if result.tuples is not None else ():
                metrics: Metrics = getattr(result.tuples, kind)
                rows.setdefault(f"{kind} MRR", {})[name] = metrics.mrr
                for k, value in metrics.hits.items():
                    rows.setdefault(f"{kind} Hits@{k}", {})[name] = value
        return rows

    def to_json(self) -> dict[str, object]:
        """Everything as `evaluate --json` prints it."""
        content: dict[str, object] = {
            "split": self.split,
            "types": {name: result.to_json() for name, result in self.types.items()},
            "A_P": self.positive,
            "A_N": self.negative,
        }
        if self.reliability is not None:
            content["reliability"] = self.reliability.to_json()
        if self.origin is not None:
            content["origin"] = self.origin.to_json()
        if self.intervals is not None:
            content["intervals"] = {name: list(ends) for name, ends in self.intervals.items()}
        if self.counting is not None:
            content["counting"] = self.counting.to_json()
        return content

    @classmethod
    def from_json(cls, content: object, source: str) -> Results:
        """Read what `to_json` returned; RunError, which names the source, if it is something else.

        A_P and A_N are checked, but computed again.
        """
        try:
            fields = mapping(content)
            entries = mapping(fields["types"])
            types = {name: TypeResult.from_json(entry) for name, entry in entries.items()}
            for value in (fields["A_P"], fields["A_N"]):
                fraction(0 if value is None else value)
            if not types:
                raise ValueError("no types")
            reliability = fields.get("reliability")
            if reliability is not None:
                reliability = Reliability.from_json(reliability, source)
            origin = fields.get("origin")
            origin = None if origin is None else Origin.from_json(origin)
            intervals = fields.get("intervals")
            intervals = None if intervals is None else _intervals(intervals)
            counting = fields.get("counting")
            counting = None if counting is None else Counting.from_json(counting, source)
            return cls(str(fields["split"]), types, reliability, origin, intervals, counting)
        except CalibrationError as error:
            raise RunError(f"{source} is damaged: {one_line(error)}") from error
        except (KeyError, ValueError, OverflowError) as error:
            reason = short(f"no {error}" if isinstance(error, KeyError) else str(error))
            raise RunError(f"{source} is damaged: it holds no metrics ({reason})") from error

    def to_frame(self) -> Any:
        """MRR, Hits and the number of queries as a DataFrame, a row per type (needs pandas)."""
        hits = {f"hits@{k}": by_type for k, by_type in self.hits.items()}
        columns: dict[str, list[Any]] = {"type": [*self.types]}
        columns["mrr"] = [result.mrr for result in self.types.values()]
        columns |= {name: [by_type.get(n) for n in self.types] for name, by_type in hits.items()}
        columns["queries"] = [result.queries for result in self.types.values()]
        return data_frame(columns)

    def _repr_html_(self) -> str:
        """What a notebook shows: the tables of `to_text`, in percent."""
        header, *rows = self.to_table().texts
        return html_paragraphs([repr(self)]) + html_table(header, rows)

    def to_table(self) -> Table:
        """MRR, Hits and MRR by missing edges in percent, as one table."""
        rows = {"MRR": self.mrr} | {f"Hits@{k}": by_type for k, by_type in self.hits.items()}
        rows |= {f"{edges} missing": by_type for edges, by_type in self.missing.items()}
        rows |= self.tuples
        return percent_table({label: [values] for label, values in rows.items()})

    def to_text(self) -> str:
        """MRR, Hits and MRR by missing edges in percent, as tables that fit a terminal."""
        parts = [
            _to_text({"MRR": [self.mrr]} | ({"±": [self.margins]} if self.margins else {})),
            _to_text({f"Hits@{k}": [values] for k, values in self.hits.items()}),
            _to_text({f"{edges} missing": [values] for edges, values in self.missing.items()}),
            _to_text({label: [values] for label, values in self.tuples.items()}),
        ]
        if self.reliability is not None:
            parts.append(f"probabilities of answers: {self.reliability}")
        if self.counting is not None:
            rows = {f"MAPE, {row}": [values] for row, values in self.counting.errors.items()}
            rows |= {f"ρ, {row}": [values] for row, values in self.counting.correlations.items()}
            parts += ["numbers of answers (ρ: Spearman's correlation):", _to_text(rows)]
        return "\n\n".join(part for part in parts if part)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        averages = {name: value for name, value in self.mrr.items() if name in AVERAGES}
        if self.types and not averages:
            averages = {"mean MRR": self.mean}
        parts = [f"{name} {percent([value])}" for name, value in averages.items()]
        parts += [f"{len(self.types)} types", f"{self.queries:,} queries"]
        return f"Results({self.split}: {', '.join(parts)})"


def compare(rows: Mapping[str, Sequence[Results]]) -> str:
    """The MRR of several rows in percent, as text that fits a terminal.

    A row of several results, one for each seed, shows their mean ± standard deviation.
    """
    return _to_text({label: [result.mrr for result in row] for label, row in rows.items()})


def _to_text(rows: Mapping[str, Sequence[Values]]) -> str:
    """Tables of percentages: types without negation, types with negation, then all others."""
    columns = columns_of(values for row in rows.values() for values in row)
    groups = [[*types, average] for average, types in AVERAGES.items()]
    groups.append([name for name in columns if not any(name in group for group in groups)])
    shown = [[name for name in columns if name in group] for group in groups]
    return "\n\n".join(percent_table(rows, names).to_text() for names in shown if names)


def percent_table(
    rows: Mapping[str, Sequence[Values]], columns: Sequence[str] | None = None
) -> Table:
    """Rows by label as a table of percentages; several values are the row's seeds."""
    if columns is None:
        columns = columns_of(values for row in rows.values() for values in row)
    return Table(
        ["", *columns], [[label, *percent_row(row, columns)] for label, row in rows.items()]
    )


def columns_of(values: Iterable[Values]) -> list[str]:
    """The columns of a table over some values: types in the order of the paper, then averages."""
    names = {name for row in values for name in row}
    return [*ordered(names - {*AVERAGES}), *(name for name in AVERAGES if name in names)]


def percent_row(values: Sequence[Values], columns: Iterable[str]) -> list[str]:
    """The cells of a row in percent; several values are the row's seeds."""
    return [percent([seed.get(column) for seed in values]) for column in columns]


def _turned(by_type: Mapping[str, Mapping[int, float]]) -> dict[int, dict[str, float]]:
    """type -> number -> value becomes number -> type -> value, the numbers in order."""
    numbers = sorted({number for values in by_type.values() for number in values})
    return {
        number: {name: values[number] for name, values in by_type.items() if number in values}
        for number in numbers
    }


def _intervals(value: object) -> dict[str, tuple[float, float]]:
    intervals = {}
    for name, ends in mapping(value).items():
        if not isinstance(ends, list) or len(ends) != 2:
            raise ValueError(f"{short(ends)} is not an interval")
        intervals[name] = fraction(ends[0]), fraction(ends[1])
    return intervals
