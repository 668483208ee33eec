"""What goes wrong through no fault of ours: one line that says what, where and what to do."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Collection


class LmpnnError(Exception):
    """A user can mend this; the command line prints it as one line and exits with 2."""


class BackboneError(LmpnnError):
    """Tensors that do not fit the backbone they were given to."""


class PluginError(LmpnnError):
    """A plugin that is missing, broken or claimed twice."""


class CheckpointError(LmpnnError):
    """A file that is no usable checkpoint."""


class DatasetError(LmpnnError):
    """A folder that is no usable dataset."""


class ConfigError(LmpnnError):
    """Settings that there are not, or that cannot be."""


class RunError(LmpnnError):
    """A run that cannot be begun, gone on with or evaluated."""


class QueryError(LmpnnError):
    """A formula that cannot be read or answered; it can point at the place in the text."""

    def __init__(self, message: str, text: str | None = None, column: int = 0):
        super().__init__(message if text is None else f"{message} (column {column + 1})")
        self.excerpt = None
        if text is not None:
            self.excerpt = f"{printable(text)}\n{' ' * len(printable(text[:column]))}^"


def short(value: object, most: int = 200) -> str:
    """Anything at all as a few characters of text that are safe to print."""
    text = value if isinstance(value, str) else reprlib.repr(value)
    return printable(text if len(text) <= most else f"{text[:most]}…")


def printable(text: str) -> str:
    """Text in which line ends, escape sequences and the like are written out."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def nearest(wrong: str, valid: Collection[str]) -> str:
    """The end of a message about an unknown name among many: those most like it."""
    near = _close(wrong, valid, 3)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _close(wrong: str, valid: Collection[str], most: int) -> list[str]:
    """Whatever the case of their letters."""
    folded = {name.casefold(): name for name in valid}
    return [folded[name] for name in difflib.get_close_matches(wrong.casefold(), folded, n=most)]


def choices(wrong: str, valid: Collection[str]) -> str:
    """The same where there are few: the nearest one, and all there are."""
    near = _close(wrong, valid, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}choose from: {short(', '.join(sorted(valid)) or 'none installed', 1000)}"


def examples(items: Collection[str], most: int = 3) -> str:
    """A count with the first few items: how every mismatch is reported."""
    shown = ", ".join(short(repr(item)) for item in sorted(items)[:most])
    return f"{len(items)} ({shown}{', …' if len(items) > most else ''})"
