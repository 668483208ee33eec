"""The layout of a table: its delimiter, its header, and which columns are head, relation, tail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from lmpnn_kge.errors import DatasetError, choices, short
from lmpnn_kge.graph.formats.reading import ReadOptions, Report
from lmpnn_kge.graph.formats.table_rows import Dialect, lines, records

#: Headers that are recognised, in any order of the columns and with others between them.
HEADERS = (
    ("head", "relation", "tail"),
    ("subject", "predicate", "object"),
    ("source", "relation", "target"),
)

#: What can separate the columns of a .csv file, unless the user says so.
SEPARATORS = (",", ";", "\t", "|")

#: What is between quotes separates nothing.
QUOTED = re.compile('"[^"]*"')

#: The lines that are looked at to find a delimiter.
LOOKED_AT = 20


@dataclass(frozen=True)
class Columns:
    """Where head, relation and tail stand in a row; the relation can be the same in all rows."""

    head: int
    relation: int | None
    tail: int
    constant: str | None = None

    def of(self, fields: Sequence[str]) -> tuple[str, str, str]:
        relation = self.constant if self.relation is None else fields[self.relation]
        assert relation is not None  # one of both is there
        return fields[self.head], relation, fields[self.tail]


@dataclass(frozen=True)
class Layout:
    """How the triples of a text table are found."""

    dialect: Dialect
    width: int
    header: bool
    columns: Columns
    first: tuple[str, ...]  # the fields of the first line that is not empty
    line: int  # its number


def find_layout(file: Path, suffix: str, options: ReadOptions, report: Report) -> Layout | None:
    """The layout of a text file; None if it is empty."""
    dialect = find_dialect(file, suffix, options)
    found = next(records(file, dialect, Report(options.skip_bad)), None)
    if found is None:
        return None
    number, first = found
    header = options.header
    if header is None:
        by_name = not all(map(str.isdigit, options.columns or ()))
        header = by_name or (options.columns is None and _known(first) is not None)
    place = f"{file} line {number}"
    columns = find_columns(place, first, len(first), options, dialect.name, header=header)
    ignored = ignored_columns(columns, first if header else [str(n + 1) for n in range(len(first))])
    if ignored:
        report.note(f"{file}: the columns {ignored} are ignored")
    return Layout(dialect, len(first), header, columns, tuple(first), number)


def find_columns(
    place: str,
    first: Sequence[str] | None,
    width: int,
    options: ReadOptions,
    separators: str,
    *,
    header: bool = True,
) -> Columns:
    """The columns of head, relation and tail: said, named so, or the only ones.

    first has the fields of the first row, which are the names of the columns if it is a header.
    """
    names = first if header else None
    wanted = options.columns
    if wanted is None and names is not None:
        known = _known(names)
        wanted = None if known is None or options.relation is not None else known
    if wanted is None:
        expected = 3 if options.relation is None else 2
        if width != expected:
            raise DatasetError(_wrong_width(place, first, width, expected, separators))
        positions = list(range(width))
    else:
        positions = [_position(place, column, names, width) for column in wanted]
    if len(set(positions)) < len(positions):
        raise DatasetError(f"{place}: the columns {', '.join(wanted or ())} are not distinct")
    if options.relation is not None:
        return Columns(positions[0], None, positions[1], options.relation)
    head, relation, tail = positions
    return Columns(head, relation, tail)


def find_dialect(file: Path, suffix: str, options: ReadOptions) -> Dialect:
    delimiter = options.delimiter
    if delimiter is None:
        delimiter = _find_delimiter(file) if suffix == ".csv" else "\t"
    return Dialect(delimiter, delimiter != "\t" if options.quoted is None else options.quoted)


def _find_delimiter(file: Path) -> str:
    """The separator that cuts the first lines into equally many columns; a comma if none does."""
    sample = [line for _, line in islice(lines(file, Report(LOOKED_AT)), LOOKED_AT)]
    plain = [QUOTED.sub("", line) for line in sample]
    counts = {sign: {line.count(sign) for line in plain} for sign in SEPARATORS}
    fitting = [sign for sign, found in counts.items() if len(found) == 1 and found != {0}]
    if len(fitting) > 1 and "," not in fitting:
        raise DatasetError(
            f"{file} may be separated by {' or '.join(map(repr, fitting))}; say by which with "
            "--delimiter"
        )
    return fitting[0] if fitting else ","  # a comma is the first of them


def _known(names: Sequence[str]) -> tuple[str, ...] | None:
    """The columns that a recognised header names, as it names them."""
    by_name = {name.strip().casefold(): name for name in names}
    if len(by_name) < len(names):
        return None
    for header in HEADERS:
        if by_name.keys() >= set(header):
            return tuple(by_name[role] for role in header)
    return None


def _position(place: str, column: str, names: Sequence[str] | None, width: int) -> int:
    stripped = [name.strip() for name in names or ()]
    if stripped.count(column.strip()) == 1:
        return stripped.index(column.strip())
    if column.strip().isdecimal() and 1 <= int(column) <= width:
        return int(column) - 1
    if column in stripped:
        raise DatasetError(f"{place} has several columns {column!r}; give their numbers, from 1")
    if names is None:
        raise DatasetError(
            f"{place} has {width} columns, and none is {column!r}; give numbers from 1, or "
            "--header if the first line names the columns"
        )
    raise DatasetError(f"{place} has no column {short(column)!r}; {choices(column, stripped)}")


def _wrong_width(
    place: str, first: Sequence[str] | None, width: int, expected: int, separators: str
) -> str:
    roles = "a head, a relation and a tail" if expected == 3 else "a head and a tail"
    text = f"{place} must be {roles} separated by {separators}, but has "
    text += "one column" if width == 1 else f"{width} columns"
    text += f" ({short(', '.join(first))})" if first and width > 1 else ""
    if width > expected:
        which = "head,relation,tail" if expected == 3 else "head,tail"
        return f"{text}; say which with `split --columns {which}`, by name or by number from 1"
    if width == 2:
        return f"{text}; give the relation of all lines with `split --relation NAME`"
    return f"{text}; if something else separates them, give `split --delimiter`"


def ignored_columns(columns: Columns, names: Sequence[str]) -> str:
    used = {columns.head, columns.relation, columns.tail}
    return short(", ".join(name for place, name in enumerate(names) if place not in used))
