"""Files that DuckDB writes by itself: if it cannot, an error of our own says why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from lmpnn_kge.errors import FileError, one_line, short

#: The words of the system, which follow the path in what DuckDB says.
REASON = re.compile(r'": ([^"{}]+)')


@contextmanager
def database_writing(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A new database to write a file with; FileError if the file cannot be written."""
    with writing(file), duckdb.connect() as database:
        database.execute("SET enable_progress_bar = false")  # it is drawn on stdout
        yield database


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """FileError if DuckDB cannot write a file."""
    try:
        yield
    except duckdb.IOException as error:
        raise FileError(f"{short(str(file))} cannot be written: {reason(error)}") from error


def reason(error: duckdb.IOException) -> str:
    """Why the system refused, without the path."""
    words = REASON.search(str(error))
    return words[1] if words else one_line(error)
