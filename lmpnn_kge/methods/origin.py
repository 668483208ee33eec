"""What results were measured with and on, so that only those on the same queries are compared.

Nothing here needs torch, so that reports can be made without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from lmpnn_kge.errors import short
from lmpnn_kge.query.patterns import ordered

if TYPE_CHECKING:
    from lmpnn_kge.methods.results import Results


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The method, its settings and its inputs; files are known by the SHA-256 of their content."""

    method: str
    settings: Mapping[str, Any]
    checkpoint: str | None
    queries: str | None  # of the store's manifest; None for a store that is in no folder
    graph: str | None  # the fingerprint of the graph; None if it was not at hand
    graph_name: str
    limit: int | None  # queries per type, at most
    versions: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: object) -> Origin:
        """Read what `to_json` returned; KeyError or ValueError if it is something else."""
        if not isinstance(content, dict):
            raise ValueError(f"the origin is {short(content)}")
        kinds: dict[str, Any] = {
            "settings": dict,
            "versions": dict,
            "limit": int | None,
            "method": str,
            "graph_name": str,
        }
        values = {field.name: content[field.name] for field in fields(cls)}
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, kinds.get(name, str | None)):
                raise ValueError(f"the {name} of its origin is {short(value)}")
        return cls(**values)


@dataclass(frozen=True)
class QuerySet:
    """The queries that the rows of one table share."""

    graph_name: str
    queries: str | None  # as in an Origin
    graph: str | None
    counts: Mapping[str, int]  # of the queries that are ranked, by type; empty if that is unknown
    split: str = "test"
    limit: int | None = None

    def why_not(self, results: Results) -> str | None:
        """Why results cannot be a row of this table; None if they can, as far as is known."""
        if results.split != self.split:
            return f"it was measured on {short(results.split)}, not on {self.split}"
        origin = results.origin
        if origin is not None:
            if _differ(origin.graph, self.graph):
                return f"it was measured on another graph: {short(origin.graph_name)}"
            if _differ(origin.queries, self.queries):
                return f"it was measured on other queries over {short(origin.graph_name)}"
            if origin.limit != self.limit:
                return f"it ranks {_per_type(origin.limit)}, not {_per_type(self.limit)}"
        for name in ordered(self.counts.keys() & results.types.keys()):
            count = results.types[name].queries
            if count != self.counts[name]:
                return (
                    f"it ranks {count:,} queries of the type {short(name)}, not "
                    f"{self.counts[name]:,}"
                )
        return None


def _differ(one: str | None, other: str | None) -> bool:
    """Whether two hashes are of different contents; files of older versions may lack one."""
    return bool(one) and bool(other) and one != other


def _per_type(limit: int | None) -> str:
    return "all queries" if limit is None else f"at most {limit:,} queries per type"
