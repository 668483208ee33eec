"""The edges of a graph as Parquet files, which engines on several machines can read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lmpnn_kge.files import atomic_folder
from lmpnn_kge.graph.adjacency import Adjacency
from lmpnn_kge.graph.duckdb_files import database_writing
from lmpnn_kge.graph.engine import Columns, Ints

#: Edges in a file: large enough to be read quickly, small enough for one task of a cluster.
ROWS = 4_000_000


def write_edges(
    folder: Path, triples: Ints, level: Ints, entities: int, relations: int, rows: int = ROWS
) -> None:
    """Write the edges of both directions as files with the columns s, p, o and level.

    triples [n, 3] are sorted. The edges are sorted by relation, so that a reader can skip the files
    and the blocks that lack a relation.
    """
    columns = Adjacency.of(triples, level, entities, relations).columns()
    count = max(1, -(-2 * len(triples) // rows))
    with atomic_folder(folder, or_same=True) as aside:
        for number, part in enumerate(np.array_split(np.arange(2 * len(triples)), count)):
            chosen = slice(part[0], part[-1] + 1) if len(part) else slice(0)
            write_parquet(
                aside / f"edges-{number:05}.parquet",
                {name: column[chosen] for name, column in columns.items()},
            )


def write_parquet(file: Path, columns: Columns) -> None:
    """Write columns as one Parquet file."""
    with database_writing(file) as database:
        data = {name: np.ascontiguousarray(column, np.int32) for name, column in columns.items()}
        database.register("incoming", data)
        database.table("incoming").write_parquet(str(file))
