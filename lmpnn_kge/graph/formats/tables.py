"""Text files of triples in columns: .csv, .tsv and JSON lines."""

from __future__ import annotations

from pathlib import Path

from lmpnn_kge.errors import DatasetError, short
from lmpnn_kge.graph.formats import table_columns
from lmpnn_kge.graph.formats.reading import ReadOptions, Report, fault_of
from lmpnn_kge.graph.formats.streams import reading
from lmpnn_kge.graph.formats.table_layout import (
    Columns,
    Layout,
    find_columns,
    find_layout,
    ignored_columns,
)
from lmpnn_kge.graph.formats.table_rows import objects, records
from lmpnn_kge.graph.numbered import Numbered, Numbering


def read_text(file: Path, suffix: str, options: ReadOptions, report: Report) -> Numbered:
    """The triples of a text file: by DuckDB, or line by line if something is wrong with it."""
    with reading(file):
        layout = find_layout(file, suffix, options, report)
    if layout is None:
        return Numbered.of([])
    fast = table_columns.read_text(file, layout)
    numbered = read_lines(file, layout, report) if fast is None else fast
    if options.header is None and options.suspects_header and not layout.header:
        _check_header(file, layout, numbered)
    _note_quotes(file, layout, numbered, report)
    return numbered


def read_lines(file: Path, layout: Layout, report: Report) -> Numbered:
    numbering = Numbering()
    separated = layout.dialect.name
    width = layout.width
    skip = layout.header
    for number, fields in records(file, layout.dialect, report):
        if skip:
            skip = False
            continue
        if len(fields) == width + 1 and not fields[-1]:
            fields.pop()  # a delimiter at the end of a line separates nothing
        if len(fields) != width:
            what = "a head, a relation and a tail" if width == 3 else f"{width} columns"
            reason = f"must be {what} separated by {separated}: {short(repr(fields))}"
            report.bad(f"{file} line {number}", reason)
            continue
        add(numbering, layout.columns.of(fields), f"{file} line {number}", report)
    return numbering.result()


def add(numbering: Numbering, triple: tuple[str, str, str], place: str, report: Report) -> None:
    for role, name in zip(("head", "relation", "tail"), triple, strict=True):
        if wrong := fault_of(name):
            report.bad(place, f"must be a head, a relation and a tail: its {role} {wrong}")
            return
    numbering.add(*triple)


def _check_header(file: Path, layout: Layout, numbered: Numbered) -> None:
    """A first line whose names occur nowhere else is a header, or else a mistake."""
    if len(numbered) < 2:
        return
    first, others = numbered.triples[0], numbered.triples[1:]
    names = set(layout.columns.of(layout.first)) - {layout.columns.constant}
    in_others = (
        (others[:, ::2] == first[0]).any()
        or (others[:, ::2] == first[2]).any()
        or (layout.columns.relation is not None and (others[:, 1] == first[1]).any())
    )
    if not in_others and {numbered.entities[first[0]], numbered.entities[first[2]]} <= names:
        raise DatasetError(
            f"the first line of {file}, {short(' '.join(layout.first))!r}, shares no name with the "
            "others: give --header if it names the columns, or --no-header if it is a triple"
        )


def _note_quotes(file: Path, layout: Layout, numbered: Numbered, report: Report) -> None:
    if layout.dialect.quoted:
        return
    quoted = sum(name[0] == name[-1] == '"' and len(name) > 1 for name in numbered.entities)
    if quoted:
        report.note(
            f"{file}: {quoted:,} entities are in double quotes, which are part of their names in "
            "a tab-separated file; if they should not be, give --quotes"
        )


def read_json_lines(file: Path, options: ReadOptions, report: Report) -> Numbered:
    """The triples of a file with a JSON object per line, whose keys the first one tells."""
    first = next(objects(file, Report(options.skip_bad)), None)
    if first is None:
        return read_objects(file, [], Columns(0, None, 0, ""), report)
    number, item = first
    keys = list(item)
    columns = find_columns(f"{file} line {number}", keys, len(keys), options, "commas")
    if ignored := ignored_columns(columns, keys):
        report.note(f"{file}: the keys {ignored} are ignored")
    fast = table_columns.read_json_lines(file, keys, columns)
    return read_objects(file, keys, columns, report) if fast is None else fast


def read_objects(file: Path, keys: list[str], columns: Columns, report: Report) -> Numbered:
    """The same, line by line."""
    numbering = Numbering()
    for number, item in objects(file, report):
        row = columns.of([item.get(key, "") for key in keys])
        add(numbering, row, f"{file} line {number}", report)
    return numbering.result()
