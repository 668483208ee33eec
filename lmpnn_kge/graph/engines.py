"""The engines that can keep a graph."""

from __future__ import annotations

from lmpnn_kge.graph.duckdb_engine import DuckDB
from lmpnn_kge.graph.engine import Engine, EngineOptions, Ints


def open_engine(
    options: EngineOptions, triples: Ints, level: Ints, entities: int, relations: int
) -> Engine:
    """An engine that keeps triples [n, 3], sorted, with the number of the split of each, [n]."""
    if options.engine == "spark":
        from lmpnn_kge.graph.spark_engine import Spark

        return Spark.of(triples, level, entities, relations, options)
    return DuckDB(triples, level, entities, relations, options.memory)
