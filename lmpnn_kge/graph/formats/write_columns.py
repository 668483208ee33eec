"""Columns as the content of a file: CSV, TSV, JSON lines or Parquet, written by DuckDB."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from lmpnn_kge.errors import FileError
from lmpnn_kge.graph.duckdb_files import database_writing

#: How DuckDB writes each format.
FORMATS = {
    "csv": "FORMAT csv, HEADER",
    "tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    "jsonl": "FORMAT json",
    "parquet": "FORMAT parquet",
}


def columns_to_bytes(
    columns: Mapping[str, npt.NDArray[Any]], types: Mapping[str, str], format: str
) -> bytes:
    """The content of a file with these columns, each of a type of DuckDB."""
    selected = ", ".join(f'"{name}"::{types[name]} AS "{name}"' for name in columns)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "columns")
        with database_writing(file) as database:
            database.register("columns", dict(columns))
            database.execute(
                f"COPY (SELECT {selected} FROM columns) TO ? ({FORMATS[format]})", [str(file)]
            )
        return file.read_bytes()


def format_of(file: str | Path, formats: Collection[str], otherwise: str = "choose one") -> str:
    """The format that the ending of a file names; FileError if it is not one of these."""
    format = Path(file).suffix.removeprefix(".").lower()
    if format not in formats:
        endings = ", ".join(f".{name}" for name in formats)
        raise FileError(f"{file} does not end in one of {endings}; {otherwise}")
    return format
