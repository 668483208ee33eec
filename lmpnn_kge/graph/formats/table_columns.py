"""Tables by DuckDB: in parallel, column by column, with no loop over lines in Python.

A table is read whole and right, or None is returned and `table_rows` finds out what is wrong.
"""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from lmpnn_kge.graph.formats.reading import FORBIDDEN
from lmpnn_kge.graph.formats.streams import has_hole, most_bytes, most_rows, too_many_rows
from lmpnn_kge.graph.formats.table_layout import Columns, Layout
from lmpnn_kge.graph.formats.table_rows import MAX_LINE
from lmpnn_kge.graph.numbered import Numbered

#: Memory for DuckDB; a table that needs more goes through the disk.
MEMORY = "1GB"

#: The rows of a table, numbered: names in their order, and the triples in that of the file.
NUMBER = """
    CREATE TEMP TABLE entities AS SELECT name, (row_number() OVER (ORDER BY name) - 1)::INTEGER
        AS id FROM (SELECT h AS name FROM raw UNION SELECT t FROM raw);
    CREATE TEMP TABLE relations AS SELECT name, (row_number() OVER (ORDER BY name) - 1)::INTEGER
        AS id FROM (SELECT DISTINCT r AS name FROM raw);
    CREATE TEMP TABLE rows AS SELECT a.id AS s, b.id AS p, c.id AS o, raw.rowid AS place FROM raw
        JOIN entities a ON h = a.name JOIN relations b ON r = b.name JOIN entities c ON t = c.name;
"""  # fmt: skip


@contextmanager
def connection(file: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with little memory, and as much room on the disk as a file to be read can need.

    Ctrl-C stays Ctrl-C.
    """
    with tempfile.TemporaryDirectory(prefix="lmpnn-kge-") as folder:
        settings: dict[str, Any] = {
            "memory_limit": MEMORY,
            "temp_directory": folder,
            "autoinstall_known_extensions": "false",
        }
        if file is not None:
            settings["max_temp_directory_size"] = f"{most_bytes(file)}B"
        with duckdb.connect(config=settings) as opened:
            opened.execute("SET enable_progress_bar = false")  # it is drawn on stdout
            try:
                yield opened
            except (duckdb.InterruptException, RuntimeError) as error:
                if "interrupted" not in str(error).lower():
                    raise
                raise KeyboardInterrupt from error


def read_text(file: Path, layout: Layout) -> Numbered | None:
    """The triples of a text table; None if anything is not as it should be."""
    if has_hole(file):  # DuckDB would read to its end before it says so
        return None
    if layout.header and layout.line > 1:  # DuckDB would take the empty first line for the header
        return None
    quote = '"' if layout.dialect.quoted else ""
    kinds = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(layout.width))
    source = (
        f"read_csv($file, auto_detect = false, delim = $delimiter, quote = '{quote}', "
        f"escape = '{quote}', header = {layout.header}, columns = {{{kinds}}}, comment = '', "
        f"max_line_size = {MAX_LINE}, compression = '{compression(file)}')"
    )
    values = {"file": pattern(file), "delimiter": layout.dialect.delimiter}
    try:
        with connection(file) as database:
            _create(database, source + limit(file), layout.columns, values)
            check_rows(database, file)
            return number(database, strict_spaces=layout.dialect.quoted)
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # the reason and the line are found by reading line by line
        return None


def read_json_lines(file: Path, keys: list[str], columns: Columns) -> Numbered | None:
    """The triples of JSON objects, one per line; None if anything is not as it should be."""
    if has_hole(file):
        return None
    values: dict[str, Any] = {"file": pattern(file)}
    parts = []
    for alias, place in (("h", columns.head), ("r", columns.relation), ("t", columns.tail)):
        values[alias] = columns.constant if place is None else _pointer(keys[place])
        named = f"json_type(json, ${alias}) IN ('VARCHAR', 'UBIGINT', 'BIGINT')"
        value = f"CASE WHEN {named} THEN json_extract_string(json, ${alias}) END"
        parts.append(f"{f'${alias}' if place is None else value} AS {alias}")
    source = (
        f"read_ndjson_objects($file, maximum_object_size = {MAX_LINE}, "
        f"compression = '{compression(file)}')"
    )
    try:
        with connection(file) as database:
            database.execute(
                f"CREATE TEMP TABLE raw AS SELECT {', '.join(parts)} FROM {source}{limit(file)}",
                values,
            )
            check_rows(database, file)
            return number(database)
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        return None


def _pointer(key: str) -> str:
    """A key as a JSON pointer."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def _create(
    database: duckdb.DuckDBPyConnection, source: str, columns: Columns, values: dict[str, Any]
) -> None:
    relation = f"c{columns.relation}"
    if columns.relation is None:
        relation, values = "$relation", {**values, "relation": columns.constant}
    database.execute(
        f"CREATE TEMP TABLE raw AS SELECT c{columns.head} AS h, {relation} AS r, c{columns.tail} "
        f"AS t FROM {source}",
        values,
    )


def number(database: duckdb.DuckDBPyConnection, *, strict_spaces: bool = False) -> Numbered | None:
    """The table `raw` numbered; None if it has a name that cannot be one.

    strict_spaces also returns None if a name begins with a space, which may belong to a quote.
    """
    database.execute(NUMBER)
    space = " OR starts_with(name, ' ')" if strict_spaces else ""
    wrong = f"name IS NULL OR name = '' OR regexp_matches(name, '{FORBIDDEN.pattern}'){space}"
    for table in ("entities", "relations"):
        if database.execute(f"SELECT count(*) FROM {table} WHERE {wrong}").fetchone() != (0,):
            return None
    rows = database.execute("SELECT s, p, o FROM rows ORDER BY place").fetchnumpy()
    triples = np.stack([rows[name] for name in "spo"], axis=1, dtype=np.int64)
    return Numbered(_names(database, "entities"), _names(database, "relations"), triples)


def _names(database: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """No name has a line break, so that all of them travel as one text."""
    row = database.execute(f"SELECT string_agg(name, chr(10) ORDER BY id) FROM {table}").fetchone()
    return row[0].split("\n") if row and row[0] is not None else []


def limit(file: Path) -> str:
    """The end of a SELECT from a compressed file, which may have more rows than anybody has."""
    most = most_rows(file)
    return "" if most is None else f" LIMIT {most + 1}"


def check_rows(database: duckdb.DuckDBPyConnection, file: Path, table: str = "raw") -> None:
    """DatasetError if a table has more rows than its compressed file may have."""
    row = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    most = most_rows(file)
    if row is not None and most is not None and row[0] > most:
        raise too_many_rows(file)


def pattern(file: Path) -> str:
    """A file as DuckDB takes it, for whom * in a name makes a pattern, and s3:// an address."""
    return glob.escape(str(file.resolve()))


def compression(file: Path) -> str:
    return {".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower(), "uncompressed")
