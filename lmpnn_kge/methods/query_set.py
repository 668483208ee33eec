"""The queries of a table: only results on the same ones can be compared.

Nothing here needs torch, so that reports can be made without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmpnn_kge.errors import short
from lmpnn_kge.methods.results import Results
from lmpnn_kge.query.patterns import ordered


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
