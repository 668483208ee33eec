"""How triples are read: what a user says about a file, and what the reader says back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from lmpnn_kge.errors import DatasetError, choices, short

#: Characters that no name can have: the files of a graph are tables of lines.
FORBIDDEN = re.compile("[\\t\\n\\r\\x00]")

#: Half a character, which no file can hold.
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class ReadOptions:
    """What a user says about files of triples; None is found out."""

    format: str | None = None  # an ending such as csv; default: the one of the file
    columns: tuple[str, ...] | None = None  # of head, relation and tail, by name or number
    relation: str | None = None  # of every triple, for files of heads and tails
    delimiter: str | None = None
    header: bool | None = None
    quoted: bool | None = None  # whether fields can be in double quotes
    language: str | None = None  # of labels in RDF
    skip_bad: int = 0  # bad lines to leave out, of all files
    suspects_header: bool = True  # refuse a first line that shares no name with the others

    def __post_init__(self) -> None:
        wanted = 3 if self.relation is None else 2
        if self.columns is not None and len(self.columns) != wanted:
            roles = "head, relation and tail" if wanted == 3 else "head and tail"
            more = "; files without a relation need --relation NAME" if wanted == 3 else ""
            raise DatasetError(
                f"columns {','.join(self.columns)!r} must be {wanted}: {roles}{more}"
            )
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise DatasetError(f"the delimiter must be one character, not {self.delimiter!r}")
        if self.delimiter in ("\n", "\r", "\0", '"'):
            raise DatasetError(f"{self.delimiter!r} cannot separate columns")
        if self.relation is not None and (wrong := fault_of(self.relation)):
            raise DatasetError(f"the relation {short(repr(self.relation))} {wrong}")


def read_options(given: Mapping[str, Any]) -> ReadOptions:
    """Options by name; columns can be text such as 'head,relation,tail'."""
    known = [item.name for item in fields(ReadOptions)]
    for name in given:
        if name not in known:
            raise DatasetError(
                f"there is no option {name!r} to read triples; {choices(name, known)}"
            )
    columns = given.get("columns")
    if columns is None:
        return ReadOptions(**given)
    parts = columns.split(",") if isinstance(columns, str) else [str(column) for column in columns]
    return ReadOptions(**{**given, "columns": tuple(part.strip() for part in parts)})


@dataclass
class Report:
    """What a reader found, for one or several files: notes, and bad lines within a limit."""

    skip_bad: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)

    def bad(self, place: str, reason: str) -> None:
        """Leave out a bad line, or refuse it if there are too many."""
        self.skipped += 1
        if self.skipped > self.skip_bad:
            more = f" ({self.skip_bad} bad lines were skipped before)" if self.skip_bad else ""
            more = more or "; `lmpnn-kge split --skip-bad N` leaves out up to N such lines"
            raise DatasetError(f"{place} {reason}{more}")
        if self.skipped == 1:
            self.notes.append(f"skipped: {place} {reason}")

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def all_notes(self) -> tuple[str, ...]:
        more = [f"skipped {self.skipped:,} bad lines in all"] if self.skipped > 1 else []
        return (*self.notes, *more)


def fault_of(name: str) -> str | None:
    """Why a text cannot be a name, if it cannot."""
    if not name:
        return "is empty"
    if FORBIDDEN.search(name):
        return "has a tab, a line break or a NUL character"
    return None if is_unicode(name) else "is not Unicode text"


def is_unicode(name: str) -> bool:
    """Whether a text can be written to a file."""
    return name.isascii() or SURROGATE.search(name) is None


def first_fault(names: Sequence[str]) -> tuple[str, str] | None:
    """The first text that cannot be a name, and why; a million names are checked at once."""
    joined = "\n".join(names)
    suspicious = joined.count("\n") >= len(names) or any(sign in joined for sign in "\t\r\0")
    if not suspicious and joined.isascii() and not ({""} & set(names)):
        return None
    return next(((name, wrong) for name in names if (wrong := fault_of(name))), None)
