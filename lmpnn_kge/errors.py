"""Errors that a user can fix: one line that says what is wrong, where, and what to do next."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Collection

#: Characters of a formula that an error shows on either side of the place it points at.
EXCERPT = 500

#: Longer names are not compared with valid ones, which would take long and find nothing.
LONG_NAME = 500


class LmpnnError(Exception):
    """A mistake that a user can fix; the command line prints it as one line and exits with 2."""


class BackboneError(LmpnnError):
    """Tensors that do not fit their backbone."""


class PluginError(LmpnnError):
    """A plugin that is missing, broken or claimed by two distributions."""


class CheckpointError(LmpnnError):
    """A file that is not a usable checkpoint."""


class DatasetError(LmpnnError):
    """A folder that is not a usable dataset or query store."""


class FileError(LmpnnError):
    """A file or folder that cannot be written."""


class ConfigError(LmpnnError):
    """An unknown setting or an invalid value."""


class RunError(LmpnnError):
    """A run that cannot be started, resumed or evaluated."""


class CalibrationError(LmpnnError):
    """Scores that cannot be made into probabilities, or a file of such that is damaged."""


class QueryError(LmpnnError):
    """A formula that cannot be read or answered; it can point at a position in the text."""

    def __init__(self, message: str, text: str | None = None, column: int = 0):
        super().__init__(message if text is None else f"{message} (column {column + 1})")
        self.excerpt: str | None = None
        self.column = None if text is None else column  # from 0
        if text is not None:
            before, after = printable(text[:column][-EXCERPT:]), text[column : column + EXCERPT]
            start, end = "…" * (column > EXCERPT), "…" * (len(text) > column + EXCERPT)
            shown = f"{start}{before}{printable(after)}{end}"
            self.excerpt = f"{shown}\n{' ' * len(start + before)}^"

    def within(self, place: str) -> QueryError:
        """The same error with the place of the formula among others."""
        error = QueryError(f"{place}: {self}")
        error.excerpt, error.column = self.excerpt, self.column
        error.__cause__ = self
        return error


class TimeLimitError(QueryError):
    """A formula whose answer took longer than the time limit."""


class StoppedError(QueryError):
    """A formula whose answer nobody waits for any more."""


class _Repr(reprlib.Repr):
    """Prints any value; Python refuses to print numbers of thousands of digits."""

    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() > 10_000:
            return f"a number of {x.bit_length():,} bits"
        return super().repr_int(x, level)


_repr = _Repr()


def short(value: object, most: int = 200) -> str:
    """Any value as a few characters of text that are safe to print."""
    text = value if isinstance(value, str) else _repr.repr(value)
    return printable(text if len(text) <= most else f"{text[:most]}…")


def one_line(error: BaseException, most: int = 200) -> str:
    """The message of an exception on one line, or its class if it has no message."""
    return short(" ".join(str(error)[: 10 * most].split()) or type(error).__name__, most)


def printable(text: str) -> str:
    """Text in which line ends, escape sequences and other control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def nearest(wrong: str, valid: Collection[str], prefer: Callable[[str], bool] | None = None) -> str:
    """The end of an error about an unknown name among many: the most similar names.

    Among similar names, those to prefer come first.
    """
    near = _close(wrong, valid, 3 if prefer is None else 10)
    near = near if prefer is None else sorted(near, key=prefer, reverse=True)[:3]
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _close(wrong: str, valid: Collection[str], most: int) -> list[str]:
    """Similar names, ignoring case."""
    if len(wrong) > LONG_NAME:
        return []
    folded = {name.casefold(): name for name in valid}
    return [folded[name] for name in difflib.get_close_matches(wrong.casefold(), folded, n=most)]


def choices(wrong: str, valid: Collection[str], if_none: str = "there are none") -> str:
    """The end of a message about an unknown name among few: the nearest name and all valid ones.

    if_none is the end of the message if no name is valid.
    """
    if not valid:
        return if_none
    near = _close(wrong, valid, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}choose from: {short(', '.join(sorted(valid)), 1000)}"


def examples(items: Collection[str], most: int = 3) -> str:
    """A count with the first few items: how every mismatch is reported."""
    shown = ", ".join(short(repr(item)) for item in sorted(items)[:most])
    return f"{len(items)} ({shown}{', …' if len(items) > most else ''})"
