"""The queries that the rows of a table are tested on: those of the table, and those of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmpnn_kge.errors import RunError
from lmpnn_kge.files import distinct_names
from lmpnn_kge.methods.query_set import QuerySet
from lmpnn_kge.methods.results import Results
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.runs.inputs import Inputs, renumber_queries
from lmpnn_kge.training.provenance import QueriesSource


@dataclass(frozen=True, eq=False)
class TestSet:
    """Test queries, at most `limit` of each type, that every row of a table is ranked on."""

    name: str  # of the folder; empty for the queries of the table itself
    queries: QueriesSource
    limit: int | None = None
    other: QueryStore | None = None  # in its own rows; None for the queries of the table

    @property
    def suffix(self) -> str:
        """What sets the files of its results apart from those of other sets."""
        parts = (self.name.replace("/", "-"), "" if self.limit is None else str(self.limit))
        return "".join(f"-{part}" for part in parts if part)

    @property
    def title(self) -> str:
        """What is tested, for people."""
        most = "" if self.limit is None else f", at most {self.limit:,} per type"
        return f"test queries{f' of {self.name}' if self.name else ''}{most}"

    def store(self, inputs: Inputs) -> QueryStore:
        """The queries in the rows of a backbone."""
        if self.other is None:
            return inputs.store
        return renumber_queries(self.other, inputs.vocabulary)[0]

    def has(self, results: Results) -> bool:
        """Whether results are known to be those of these queries."""
        origin = results.origin
        return (
            origin is not None
            and origin.queries in (None, self.queries.sha256)
            and origin.limit == self.limit
        )

    def query_set(self, inputs: Inputs) -> QuerySet:
        """What an additional row must have been measured on."""
        groups = self.store(inputs).queries("test")
        counts = {name: len(group.ranked) for name, group in groups.items()}
        if self.limit is not None:
            counts = {name: min(self.limit, count) for name, count in counts.items()}
        sha256, graph = self.queries.sha256, inputs.store.graph
        return QuerySet(graph, sha256, inputs.graph_hash, counts, limit=self.limit)


def test_sets(
    inputs: Inputs, folders: Sequence[str | Path], limit: int | None
) -> tuple[TestSet, ...]:
    """The table's own test queries, then those of other stores; RunError if one has none."""
    own = TestSet("", inputs.queries, limit)
    paths = list({Path(folder).resolve(): Path(folder) for folder in folders}.values())
    sets = [own]
    for name, path in zip(distinct_names(paths) if paths else [], paths, strict=True):
        store = QueryStore.open(path)
        hard = (group.hard.values for group in store.queries("test").values())
        if not any(map(len, hard)):
            raise RunError(f"{path} has no hard answers in 'test', nothing to rank")
        sets.append(TestSet(name, QueriesSource.of(store), limit, store))
    return tuple(sets)
