"""Labels: human-readable names of ids, from a file of their own or from a graph's folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lmpnn_kge.errors import DatasetError, short
from lmpnn_kge.graph.formats.reading import ReadOptions, Report
from lmpnn_kge.graph.formats.streams import reading, suffix_of
from lmpnn_kge.graph.formats.table_layout import find_dialect
from lmpnn_kge.graph.formats.table_rows import JSON_LINES, objects, records
from lmpnn_kge.graph.vocabulary import Labels, Vocabulary

#: The columns of a file of labels; the type is optional.
COLUMNS = ("id", "label", "type")

#: The file of labels that the folder of a graph can have, with one of these endings.
NAME, ENDINGS = "labels", (".tsv", ".csv", ".txt", ".jsonl", ".tsv.gz", ".csv.gz")


@dataclass(frozen=True)
class Labelled:
    """Labels and types by id, of entities and of relations."""

    labels: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, other: Labelled) -> Labelled:
        """Both; the other one's labels come before ours."""
        return Labelled({**self.labels, **other.labels}, {**self.types, **other.types})

    def of(self, vocabulary: Vocabulary) -> Vocabulary:
        """A vocabulary with these labels; ids that are not here keep their own."""
        ids, names = vocabulary.entity_ids, vocabulary.relation_ids
        return Vocabulary(
            ids,
            names,
            _merged(ids, self.labels, vocabulary.entity_labels),
            _merged(names, self.labels, vocabulary.relation_labels),
            _merged(ids, self.types, vocabulary.entity_types),
        )


def _merged(ids: list[str], found: Mapping[str, str], labels: Labels | None) -> Labels | None:
    if labels is None:
        merged: Labels = [found.get(id_) for id_ in ids]
        return merged if any(merged) else None
    return [found.get(id_, label) for id_, label in zip(ids, labels, strict=True)]


def read_labels(file: str | Path, known: Vocabulary | None = None) -> Labelled:
    """Read a file with an id, a label and perhaps a type per line.

    DatasetError if none of its ids is one of the known ones.
    """
    file = Path(file)
    labels: dict[str, str] = {}
    types: dict[str, str] = {}
    with reading(file):
        for place, fields in _rows(file):
            id_, label, type_ = fields[0], one_space(fields[1]), one_space(fields[2])
            if label and labels.setdefault(id_, label) != label:
                raise DatasetError(
                    f"{place} gives {short(repr(id_))} a second label, {short(label)!r}; it has "
                    f"{short(labels[id_])!r}"
                )
            if type_:
                types.setdefault(id_, type_)
    found = Labelled(labels, types)
    if known is not None and not _used(found, known):
        raise DatasetError(
            f"{file} has labels for {len(labels):,} ids, and none of them is in the graph; its "
            f"first column must be an id such as {short(known.entity_ids[0])!r}"
        )
    return found


def _used(found: Labelled, names: Vocabulary) -> bool:
    return any(id_ in found.labels for id_ in (*names.relation_ids, *names.entity_ids))


def labels_in(folder: Path) -> Labelled | None:
    """The labels that a file in the folder of a graph has, if there is one."""
    files = [folder / f"{NAME}{ending}" for ending in ENDINGS]
    found = [file for file in files if file.is_file()]
    if len(found) > 1:
        raise DatasetError(f"{folder} has {' and '.join(f.name for f in found)}; keep one of them")
    return read_labels(found[0]) if found else None


def _rows(file: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The id, the label and the type of each line, with its place; a header sets their order."""
    report = Report()
    if suffix_of(file) in JSON_LINES:
        for number, item in objects(file, report):
            yield f"{file} line {number}", tuple(item.get(key, "") for key in COLUMNS)
        return
    order: list[int] | None = None
    dialect = find_dialect(file, suffix_of(file), ReadOptions())
    for number, fields in records(file, dialect, report):
        place = f"{file} line {number}"
        if order is None:
            names = [field.strip().casefold().replace("name", "label") for field in fields]
            is_header = {"id", "label"} <= set(names)
            order = [names.index(name) for name in COLUMNS if name in names] if is_header else []
            if is_header:
                continue
        if order and max(order) < len(fields):
            fields = [fields[position] for position in order]
        if len(fields) not in (2, 3):
            raise DatasetError(
                f"{place} must be an id, a label and perhaps a type, or a header must name them: "
                f"{short(repr(fields))}"
            )
        yield place, (*fields, "")[:3]


def one_space(text: str) -> str:
    """A text on one line, without spaces at its ends."""
    return " ".join(text.split())
