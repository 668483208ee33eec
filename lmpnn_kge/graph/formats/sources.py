"""Triples from anywhere: files of any format, standard input, DataFrames, arrays and iterables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import DatasetError, choices
from lmpnn_kge.graph.formats import frames, rdf, tables
from lmpnn_kge.graph.formats.labels import Labelled
from lmpnn_kge.graph.formats.reading import ReadOptions, Report
from lmpnn_kge.graph.formats.streams import (
    COLUMNAR,
    STDIN,
    find_files,
    standard_input,
    stem_of,
    suffix_of,
)
from lmpnn_kge.graph.formats.table_rows import JSON_LINES
from lmpnn_kge.graph.numbered import Numbered

TEXT = (".tsv", ".csv", ".txt", ".tab", ".del")

#: The endings of all files of triples; any of them but Parquet's can be followed by .gz or .zst.
ENDINGS = (*TEXT, *JSON_LINES, *COLUMNAR, *rdf.FORMATS)

#: For formats that have none.
NO_LABELS = Labelled()


@dataclass(frozen=True, eq=False)
class Source:
    """Triples as they were read, with the labels that came with them."""

    name: str
    numbered: Numbered
    labelled: Labelled = NO_LABELS
    notes: tuple[str, ...] = ()


def is_files(source: Any) -> bool:
    """Whether a source is a path, or several."""
    if isinstance(source, str | Path):
        return True
    return (
        isinstance(source, Sequence)
        and bool(source)
        and all(isinstance(item, str | Path) for item in source)
    )


def read_source(source: Any, options: ReadOptions | None = None) -> Source:
    """Read files (a path, a pattern, - or several), a DataFrame, an array or an iterable."""
    options = options or ReadOptions()
    if is_files(source):
        return read_files(source, options)
    report = Report(options.skip_bad)
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        numbered = frames.read_frame(source, options, report)
    elif isinstance(source, Iterable):
        numbered = frames.read_rows(source, options, report)
    else:
        raise DatasetError(
            f"a {type(source).__name__} holds no triples; give a path, a DataFrame, or rows of "
            "head, relation and tail"
        )
    return Source("graph", numbered, notes=report.all_notes())


def read_files(paths: str | Path | Sequence[str | Path], options: ReadOptions) -> Source:
    """Read one or several files of triples."""
    files = find_files(paths)
    report = Report(options.skip_bad)
    parts: list[Numbered] = []
    labelled = Labelled()
    for place, file in enumerate(files):
        numbered, labels = _read(file, options, report)
        labelled |= _apart(labels, place)
        parts.append(_nodes_apart(numbered, place) if labels is not NO_LABELS else numbered)
    name = "stdin" if str(files[0]) == STDIN else stem_of(files[0])
    return Source(name, Numbered.joined(parts), labelled, report.all_notes())


def _read(file: Path, options: ReadOptions, report: Report) -> tuple[Numbered, Labelled]:
    suffix = _suffix(file, options)
    if str(file) != STDIN:
        return _read_file(file, suffix, options, report)
    with standard_input(suffix) as copy:
        try:
            return _read_file(copy, suffix, options, report)
        except DatasetError as error:
            raise DatasetError(str(error).replace(str(copy), "stdin")) from error
        finally:
            report.notes = [note.replace(str(copy), "stdin") for note in report.notes]


def _read_file(
    file: Path, suffix: str, options: ReadOptions, report: Report
) -> tuple[Numbered, Labelled]:
    if suffix in rdf.FORMATS:
        return rdf.read(file, suffix, options, report)
    if suffix in COLUMNAR:
        return frames.read_parquet(file, options, report), NO_LABELS
    if suffix in JSON_LINES:
        return tables.read_json_lines(file, options, report), NO_LABELS
    return tables.read_text(file, suffix, options, report), NO_LABELS


def _suffix(file: Path, options: ReadOptions) -> str:
    """The ending that says how a file is read; other endings are those of tab-separated text."""
    if options.format is None:
        return suffix_of(file)
    suffix = f".{options.format.lower().removeprefix('.')}"
    if suffix not in ENDINGS:
        known = [ending.removeprefix(".") for ending in ENDINGS]
        raise DatasetError(f"unknown format {options.format!r}; {choices(options.format, known)}")
    return suffix


def _nodes_apart(numbered: Numbered, place: int) -> Numbered:
    """Blank nodes of different files are different, even if they have the same name."""
    entities = [_apart_name(id_, place) for id_ in numbered.entities] if place else None
    return numbered if entities is None else dataclasses.replace(numbered, entities=entities)


def _apart(labelled: Labelled, place: int) -> Labelled:
    if not place:
        return labelled
    return Labelled({_apart_name(id_, place): text for id_, text in labelled.labels.items()})


def _apart_name(id_: str, place: int) -> str:
    return f"_:file{place + 1}.{id_[2:]}" if id_.startswith("_:") else id_
