"""The metrics of one query type as a value, and numbers that are read from JSON.

Nothing here needs torch, so that reports can be made without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lmpnn_kge.errors import short


@dataclass(frozen=True)
class Metrics:
    """MRR and Hits, as fractions."""

    mrr: float
    hits: Mapping[int, float]

    def to_json(self) -> dict[str, object]:
        return {"mrr": self.mrr, **{f"hits@{k}": value for k, value in self.hits.items()}}

    @classmethod
    def from_json(cls, content: object) -> Metrics:
        """Read what `to_json` returned, perhaps beside more."""
        fields = mapping(content)
        hits = {key.removeprefix("hits@"): fields[key] for key in fields if key.startswith("hits@")}
        return cls(fraction(fields["mrr"]), {int(k): fraction(v) for k, v in hits.items()})


@dataclass(frozen=True)
class TupleResult:
    """The metrics of EFO-k (`methods.tuple_ranks`) for a type whose answers are tuples."""

    marginal_queries: int  # those with an entity that is in no easy tuple
    multiply: Metrics
    joint: Metrics

    def to_json(self) -> dict[str, object]:
        return {
            "marginal_queries": self.marginal_queries,
            "multiply": self.multiply.to_json(),
            "joint": self.joint.to_json(),
        }

    @classmethod
    def from_json(cls, content: object) -> TupleResult:
        """Read what `to_json` returned; KeyError or ValueError if it is something else."""
        fields = mapping(content)
        metrics = (Metrics.from_json(fields[name]) for name in ("multiply", "joint"))
        return cls(count(fields["marginal_queries"]), *metrics)


@dataclass(frozen=True)
class TypeResult:
    """The metrics of one query type, as fractions; if its answers are tuples, the marginal ones."""

    mrr: float
    hits: Mapping[int, float]
    queries: int
    by_missing: Mapping[int, tuple[float, int]]  # missing edges -> MRR, number of hard answers
    tuples: TupleResult | None = None  # if its answers are tuples

    def to_json(self) -> dict[str, object]:
        return {
            **Metrics(self.mrr, self.hits).to_json(),
            "queries": self.queries,
            "missing_edges": {
                str(edges): {"mrr": mrr, "answers": answers}
                for edges, (mrr, answers) in self.by_missing.items()
            },
            **({} if self.tuples is None else {"tuples": self.tuples.to_json()}),
        }

    @classmethod
    def from_json(cls, content: object) -> TypeResult:
        """Read what `to_json` returned; KeyError or ValueError if it is something else."""
        fields = mapping(content)
        metrics = Metrics.from_json(content)
        tuples = fields.get("tuples")
        missing = {
            int(edges): mapping(part) for edges, part in mapping(fields["missing_edges"]).items()
        }
        return cls(
            metrics.mrr,
            metrics.hits,
            count(fields["queries"]),
            {
                edges: (fraction(part["mrr"]), count(part["answers"]))
                for edges, part in missing.items()
            },
            None if tuples is None else TupleResult.from_json(tuples),
        )


def number(value: object) -> float:
    """A finite number from a file; ValueError if it is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{short(value)} is not a number")
    return float(value)


def fraction(value: object) -> float:
    fraction = number(value)
    if not 0 <= fraction <= 1:
        raise ValueError(f"{fraction} is not between 0 and 1")
    return fraction


def count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{short(value)} is not a count")
    return value


def mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{short(value)} is not a mapping")
    return value
