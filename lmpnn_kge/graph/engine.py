"""What an engine does: it runs a compiled statement over queries and the edges of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, choices
from lmpnn_kge.graph.memory import memory_limit
from lmpnn_kge.query.normal_form import Conjunct

Ints = npt.NDArray[np.integer[Any]]
Columns = Mapping[str, Ints]


@dataclass(frozen=True, eq=False)
class Task:
    """A statement over the tables `queries`, `edges` and `entities`, and what these hold.

    constants and relations have a column [n] for each place of the pattern that queries fill, in
    the order in which the statement numbers them.
    """

    statement: str
    disjuncts: Sequence[Conjunct]  # that were compiled to the statement
    count: int  # n
    constants: Columns
    relations: Columns
    level: int  # edges of higher levels do not exist
    observed: int | None = None  # edges of higher levels cost 1; None if there are no costs
    yields_answers: bool = False  # pairs of a query and an answer, rather than witnesses

    @property
    def queries(self) -> dict[str, Ints]:
        """The table `queries`."""
        named = {"c": self.constants, "r": self.relations}
        columns = {
            f"{letter}{place}": column
            for letter, group in named.items()
            for place, column in enumerate(group.values())
        }
        return {"q": np.arange(self.count), **columns}

    def edges(self, table: str) -> str:
        """A SELECT of the edges from a table with the columns s, p, o and level."""
        cost = "" if self.observed is None else f", (level > {self.observed})::INTEGER AS cost"
        return f"SELECT s, p, o{cost} FROM {table} WHERE level <= {self.level}"


class Engine(Protocol):
    """Runs tasks, for any number of threads at the same time."""

    def run(self, task: Task) -> dict[str, Ints]:
        """The columns that a statement yields; QueryError if it needs too much memory or time."""

    def write(self, task: Task, folder: str) -> None:
        """Write the rows that a statement yields, each once, to a new folder of Parquet files."""

    def use_threads(self, count: int) -> None:
        """Let a statement take so many threads, if statements run side by side."""


#: The engines by name.
ENGINES = ("duckdb", "spark")


@dataclass(frozen=True)
class EngineOptions:
    """Which engine keeps a graph, and what it may take."""

    engine: str = ENGINES[0]
    memory: str | None = None  # on this machine, such as 8GB; by default half of it
    master: str | None = None  # spark: where it runs; by default on this machine
    parquet: str | None = None  # spark: a folder for the edges that all its machines can read

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise DatasetError(
                f"there is no engine {self.engine!r}; {choices(self.engine, ENGINES)}"
            )
        memory_limit(self.memory)  # so that a wrong size is refused before any work
        if self.engine == "duckdb" and (self.master or self.parquet):
            raise DatasetError("master and parquet are options of the engine spark; choose it, too")


DEFAULT = EngineOptions()
