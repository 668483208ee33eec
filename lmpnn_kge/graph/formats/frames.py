"""Triples in columns that have types: Parquet files, DataFrames, tables of Arrow, and arrays."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from lmpnn_kge.errors import DatasetError, one_line, short
from lmpnn_kge.files import open_file
from lmpnn_kge.graph.formats import table_columns
from lmpnn_kge.graph.formats.reading import FORBIDDEN, ReadOptions, Report, fault_of
from lmpnn_kge.graph.formats.streams import reading
from lmpnn_kge.graph.formats.table_layout import Columns, find_columns
from lmpnn_kge.graph.formats.tables import add
from lmpnn_kge.graph.numbered import Numbered, Numbering

#: Types of a column that can hold names; numbers become text.
TEXT, WHOLE = ("VARCHAR", "ENUM"), ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


def read_parquet(file: Path, options: ReadOptions, report: Report) -> Numbered:
    """The triples of a Parquet file."""
    with reading(file), open_file(file):
        pass
    with table_columns.connection(file) as database:
        try:
            source = database.from_parquet(table_columns.pattern(file))
            return _read_relation(database, source, str(file), options, report, file)
        except duckdb.InterruptException:
            raise
        except duckdb.OutOfMemoryException as error:
            raise DatasetError(f"{file} holds far more than its own size") from error
        except (duckdb.Error, RuntimeError, UnicodeDecodeError) as error:  # not Unicode
            if "interrupted" in str(error).lower():
                raise
            raise DatasetError(
                f"{file} is not a readable Parquet file: {one_line(error)}"
            ) from error


def read_frame(frame: Any, options: ReadOptions, report: Report) -> Numbered:
    """The triples of a DataFrame (pandas, Polars) or of a table of Arrow."""
    with table_columns.connection() as database:
        try:
            database.register("frame", frame)
            return _read_relation(database, database.table("frame"), "the table", options, report)
        except (duckdb.InvalidInputException, duckdb.BinderException) as error:
            raise DatasetError(
                f"a {type(frame).__name__} cannot be read as a table: {one_line(error)}"
            ) from error


def _read_relation(
    database: duckdb.DuckDBPyConnection,
    source: duckdb.DuckDBPyRelation,
    place: str,
    options: ReadOptions,
    report: Report,
    file: Path | None = None,
) -> Numbered:
    """The triples of a relation in DuckDB, whose rows are numbered from 1 in messages."""
    columns = find_columns(place, source.columns, len(source.columns), options, "columns")
    selected = {"h": columns.head, "r": columns.relation, "t": columns.tail}
    parts = []
    for alias, position in selected.items():
        if position is None:
            parts.append(f"$relation AS {alias}")
            continue
        name, kind = source.columns[position], str(source.types[position])
        if not kind.removeprefix("U").startswith((*TEXT, *WHOLE)):
            raise DatasetError(
                f"{place}: the column {short(name)!r} is {kind}; names must be text or whole "
                "numbers"
            )
        parts.append(f"{_quoted(name)}::VARCHAR AS {alias}")
    used = {position for position in selected.values() if position is not None}
    ignored = [name for at, name in enumerate(source.columns) if at not in used]
    if ignored:
        report.note(f"{place}: the columns {short(', '.join(ignored))} are ignored")
    values = {"relation": columns.constant} if columns.relation is None else {}
    source.create_view("source")
    end = "" if file is None else table_columns.limit(file)
    database.execute(f"CREATE TEMP TABLE raw AS SELECT {', '.join(parts)} FROM source{end}", values)
    if file is not None:
        table_columns.check_rows(database, file)
    _drop_bad(database, place, report)
    numbered = table_columns.number(database)
    assert numbered is not None  # bad names are gone
    return numbered


def _drop_bad(database: duckdb.DuckDBPyConnection, place: str, report: Report) -> None:
    """Leave out rows with a name that cannot be one, or refuse them."""
    faults = [
        f"{column} IS NULL OR {column} = '' OR regexp_matches({column}, '{FORBIDDEN.pattern}')"
        for column in "hrt"
    ]
    wrong = " OR ".join(faults)
    rows = database.execute(
        f"SELECT rowid, h, r, t FROM raw WHERE {wrong} ORDER BY rowid LIMIT {report.skip_bad + 1}"
    ).fetchall()
    for row, *names in rows:
        role, name = next(
            (role, name)
            for role, name in zip(("head", "relation", "tail"), names, strict=True)
            if name is None or fault_of(name)
        )
        reason = fault_of(name or "")
        report.bad(
            f"{place} row {row + 1}", f"must be a head, a relation and a tail: its {role} {reason}"
        )
    if rows:
        database.execute(f"DELETE FROM raw WHERE {wrong}")


def read_rows(rows: Iterable[Any], options: ReadOptions, report: Report) -> Numbered:
    """The triples of an iterable or an array of rows: head, relation and tail."""
    numbering = Numbering()
    columns: Columns | None = None
    for number, row in enumerate(rows, start=1):
        place = f"row {number}"
        fields = list(row) if isinstance(row, Iterable) and not isinstance(row, str) else [row]
        if columns is None:
            columns = find_columns(place, None, len(fields), options, "commas")
            width = len(fields)
        if len(fields) != width:
            report.bad(place, f"has {len(fields)} columns instead of {width}")
            continue
        texts = [str(field) if _is_name(field) else "" for field in fields]
        add(numbering, columns.of(texts), place, report)
    return numbering.result()


def _is_name(value: Any) -> bool:
    """Text or a whole number, of Python or of numpy."""
    if isinstance(value, str):
        return True
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
