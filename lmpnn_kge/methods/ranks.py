"""The rank of every hard answer, for statistics that averages do not show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.notebook import data_frame
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.store import QueryStore


@dataclass(frozen=True, eq=False)
class Ranks:
    """Filtered ranks by query type; those of ties are averaged, so that they may end in .5."""

    store: QueryStore
    queries: Mapping[str, Queries]
    values: Mapping[str, npt.NDArray[np.float64]]  # in the order of the hard answers of queries

    def __len__(self) -> int:
        return sum(map(len, self.values.values()))

    def __repr__(self) -> str:
        return f"Ranks({len(self):,} hard answers of {len(self.values)} types)"

    def to_frame(self) -> Any:
        """A DataFrame with a row for each hard answer (needs pandas).

        query is the number of the query among those of its type, question its formula, answer an
        id, and missing the number of missing edges that the answer needs, if that is known.
        """
        names = ("type", "query", "question", "answer", "missing", "rank")
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for name, queries in self.queries.items():
            hard = queries.hard
            questions = [str(self.store.question(queries, row)) for row in range(len(queries))]
            owners = hard.owners.tolist()
            columns["type"] += [name] * len(owners)
            columns["query"] += owners
            columns["question"] += [questions[owner] for owner in owners]
            columns["answer"] += self.store.names(hard.values)
            columns["missing"] += (
                [None] * len(owners) if hard.costs is None else hard.costs.tolist()
            )
            columns["rank"] += self.values[name].tolist()
        return data_frame(columns)
