"""Text files of numbers, three per line: read and written in columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lmpnn_kge.errors import FileError, short
from lmpnn_kge.graph.duckdb_files import database_writing
from lmpnn_kge.graph.formats.reading import is_unicode
from lmpnn_kge.graph.triples import Triples

#: Digits of the longest number that surely fits in 64 bits.
MAX_DIGITS = 18

TAB, LINE_END, ZERO, NINE = b"\t\n09"


def parse_rows(content: bytes) -> Triples | None:
    """The triples of tab-separated digits; None if the text has anything else in it."""
    if not content:
        return np.empty((0, 3), np.int64)
    if not content.endswith(b"\n"):
        content += b"\n"
    signs = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(signs < ZERO)  # of numbers
    if len(ends) % 3 or (signs > NINE).any():
        return None
    if (signs[ends].reshape(-1, 3) != (TAB, TAB, LINE_END)).any():
        return None
    lengths = np.diff(ends, prepend=-1) - 1
    if lengths.min() < 1 or lengths.max() > MAX_DIGITS:
        return None
    numbers = np.zeros(len(ends), np.int64)
    for place in range(int(lengths.max())):  # from the last digit to the first
        has_digit = lengths > place
        digits = signs[ends[has_digit] - 1 - place].astype(np.int64) - ZERO
        numbers[has_digit] += digits * 10**place
    return numbers.reshape(-1, 3)


def write_rows(triples: Triples, file: Path) -> None:
    """Write triples as tab-separated numbers, in their order."""
    if not is_unicode(str(file)):  # DuckDB takes no other names
        raise FileError(f"{short(str(file))} cannot be written: the name is not Unicode text")
    columns = {name: np.ascontiguousarray(triples[:, place]) for place, name in enumerate("spo")}
    with database_writing(file) as database:
        database.register("rows", columns)
        database.table("rows").write_csv(str(file), sep="\t", header=False)
