"""Compiled statements in Spark's SQL: sqlglot translates them, nothing is compiled twice."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp


def to_spark(statement: str, tables: Mapping[str, str]) -> str:
    """A statement for Spark, in which some tables have other names."""
    tree = sqlglot.parse_one(statement, read="duckdb")
    for step in tree.find_all(exp.CTE):
        step.set("materialized", None)  # Spark decides by itself
    for table in tree.find_all(exp.Table):
        name = table.name
        if name in tables:
            table.set("this", exp.to_identifier(tables[name]))
            if not table.alias:  # columns are qualified with the name
                table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    return tree.sql(dialect="spark")
