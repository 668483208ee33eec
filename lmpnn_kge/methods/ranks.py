"""The rank of every hard answer, for statistics that averages do not show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.files import check_file, write_file
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.formats.write_columns import columns_to_bytes, format_of
from lmpnn_kge.notebook import data_frame
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.question_texts import question_texts
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.formula import Constant

Floats = npt.NDArray[np.float64]

#: The formats of a file of ranks.
FORMATS = ("parquet", "csv")

#: The columns of a file of ranks, with their types in DuckDB.
COLUMNS = {
    "type": "VARCHAR",
    "query": "BIGINT",
    "question": "VARCHAR",
    "answer": "VARCHAR",
    "missing": "INTEGER",
    "rank": "DOUBLE",
    "score": "DOUBLE",
    "method": "VARCHAR",
}


@dataclass(frozen=True, eq=False)
class TupleRanks:
    """The ranks of the hard tuples of some queries, and of their entities."""

    marginal: tuple[tuple[Floats, Answers], ...]  # by variable: of the hard entities of queries
    entities: Floats  # [m, k]: the filtered rank of each entity of each hard tuple
    joint: Floats  # [m]
    scores: Floats  # [m]: the sum of the scores of the entities


@dataclass(frozen=True, eq=False)
class Ranks:
    """Filtered ranks by query type; those of ties are averaged, so that they may end in .5."""

    store: QueryStore
    split: str
    method: str
    queries: Mapping[str, Queries]
    values: Mapping[str, Floats]  # in the order of the hard answers of queries
    scores: Mapping[str, Floats]  # of the answers themselves, likewise
    tuples: Mapping[str, TupleRanks] = field(default_factory=dict)  # of types with tuples

    def __len__(self) -> int:
        return sum(map(len, self.values.values()))

    def __repr__(self) -> str:
        return f"Ranks({len(self):,} hard answers of {len(self.values)} types)"

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """A row for each hard answer, by the names of COLUMNS.

        query is the number of the query among those of its type in the store, question its formula,
        answer an id, and missing the number of missing edges that the answer needs, or None. An
        answer that is a tuple has its ids separated by commas, its joint rank, and as its score the
        sum of the scores of its entities.
        """
        ids = np.array(self.store.vocabulary.entity_ids, object)
        parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in COLUMNS}
        for name, queries in self.queries.items():
            hard = queries.hard
            owners, costs = hard.owners, hard.costs
            unknown = np.full(len(owners), None, object)
            parts["type"].append(np.full(len(owners), name, object))
            parts["query"].append(queries.numbers[owners])
            parts["question"].append(question_texts(self.store.vocabulary, queries)[owners])
            parts["answer"].append(
                ids[hard.values] if hard.values.ndim == 1 else _tuples(ids, hard)
            )
            parts["missing"].append(unknown if costs is None else costs.astype(object))
            parts["rank"].append(self.values[name])
            parts["score"].append(self.scores[name])
            parts["method"].append(np.full(len(owners), self.method, object))
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}

    def to_frame(self) -> Any:
        """The columns as a DataFrame (needs pandas)."""
        return data_frame({name: array.tolist() for name, array in self.columns.items()})

    def save(self, file: str | Path) -> None:
        """Write a .parquet or .csv file with a row for each hard answer."""
        check_ranks_file(file)
        write_file(columns_to_bytes(self.columns, COLUMNS, format_of(file, FORMATS)), Path(file))


def _tuples(ids: npt.NDArray[Any], answers: Answers) -> npt.NDArray[Any]:
    """The ids of tuples as one text each, quoted as in a formula."""
    quoted = np.array([str(Constant(name)) for name in ids], object)
    return np.array([", ".join(row) for row in quoted[answers.values].tolist()], object)


def check_ranks_file(file: str | Path) -> None:
    """FileError if ranks cannot be written to this file, which is best known before the work."""
    format_of(file, FORMATS)
    check_file(file)
