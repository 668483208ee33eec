"""Tables line by line: slow, exact, and with the number of every line that is wrong.

This module defines what a table means. `table_columns` reads the same tables many times faster if
nothing is wrong with them.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lmpnn_kge.errors import DatasetError, one_line, short
from lmpnn_kge.graph.formats.reading import Report
from lmpnn_kge.graph.formats.streams import most_rows, open_bytes, reading, too_many_rows

#: Bytes of the longest line, so that a file without line ends does not fill the memory.
MAX_LINE = 2_000_000

#: The endings of files with a JSON object per line.
JSON_LINES = (".jsonl", ".ndjson")

BOM = b"\xef\xbb\xbf"

QUOTED = re.compile('"[^"]*"')


@dataclass(frozen=True)
class Dialect:
    """How the lines of a text file are cut into fields."""

    delimiter: str
    quoted: bool

    @property
    def name(self) -> str:
        """The separators in words."""
        return {"\t": "tabs", ",": "commas", ";": "semicolons", " ": "spaces"}.get(
            self.delimiter, repr(self.delimiter)
        )


def lines(file: Path, report: Report) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without line ends; empty ones are left out."""
    with reading(file), open_bytes(file) as stream:
        for number, line in enumerate(_bounded(stream, file), start=1):
            try:
                text = (line.removeprefix(BOM) if number == 1 else line).decode()
            except UnicodeDecodeError as error:
                if line.startswith((b"\xff\xfe", b"\xfe\xff")) and number == 1:
                    raise DatasetError(f"{file} is UTF-16; save it as UTF-8") from error
                wrong = short(repr(line[max(0, error.start - 20) : error.start + 20]))
                report.bad(f"{file} line {number}", f"is not UTF-8: {wrong}")
                continue
            text = text.removesuffix("\n").removesuffix("\r")
            if text:
                yield number, text


def _bounded(stream: IO[bytes], file: Path) -> Iterator[bytes]:
    number, most = 0, most_rows(file)
    while line := stream.readline(MAX_LINE):
        number += 1
        if number == most:
            raise too_many_rows(file)
        if len(line) == MAX_LINE:
            raise DatasetError(f"{file} line {number} is longer than {MAX_LINE:,} bytes")
        yield line


def records(file: Path, dialect: Dialect, report: Report) -> Iterator[tuple[int, list[str]]]:
    """The records of a text file with the number of their first line."""
    if not dialect.quoted:
        for number, line in lines(file, report):
            yield number, line.split(dialect.delimiter)
        return
    first = last = spaced = 0
    space = re.compile(rf"(?:^|{re.escape(dialect.delimiter)}) +[^ \"]")

    def numbered() -> Iterator[str]:
        nonlocal first, last, spaced
        for number, line in lines(file, report):
            first, last = first or number, number
            if not spaced and space.search(QUOTED.sub('""', line)):
                spaced = number
            yield line + "\n"

    rows = csv.reader(numbered(), delimiter=dialect.delimiter, skipinitialspace=True, strict=True)
    while True:
        first = 0
        try:
            fields = next(rows)
        except StopIteration:
            if spaced:
                report.note(
                    f"{file}: spaces before names are left out, as in line {spaced}; put names "
                    "that begin with a space in double quotes"
                )
            return
        except csv.Error as error:
            # What follows an open quote cannot be told from what it holds.
            if first != last or "unexpected end" in str(error):
                raise DatasetError(
                    f"{file} line {first}: a double quote is not closed ({error}); if quotes are "
                    "part of names, give --no-quotes"
                ) from error
            report.bad(f"{file} line {first}", f"is not readable: {error}")
            continue
        yield first, fields


def objects(file: Path, report: Report) -> Iterator[tuple[int, dict[str, str]]]:
    """The objects of a file of JSON lines; numbers become text, and other values are left out."""
    for number, line in lines(file, report):
        if not line.strip():
            continue
        try:
            value = json.loads(line, object_pairs_hook=_first_of_each)
        except (ValueError, RecursionError) as error:
            report.bad(f"{file} line {number}", f"is not JSON: {one_line(error)}")
            continue
        if not isinstance(value, dict):
            report.bad(f"{file} line {number}", f"is not a JSON object: {short(line)}")
            continue
        yield (
            number,
            {
                key: str(item)
                for key, item in value.items()
                if isinstance(item, str | int) and not isinstance(item, bool)
            },
        )


def _first_of_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object; of a repeated key, the first value counts."""
    item: dict[str, object] = {}
    for key, value in pairs:
        item.setdefault(key, value)
    return item
