"""Text that fits the terminal: long lines break between words, and a file has no right edge."""

from __future__ import annotations

import shutil
import sys
import textwrap

from lmpnn_kge.errors import printable

#: Width for output that does not go to a terminal: every line stays in one piece.
UNLIMITED = 100_000


def line_width() -> int:
    """Columns of the terminal, or UNLIMITED if the output goes to a file or another program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED


def labelled(label: str, text: str, column: int) -> str:
    """A label with a text that starts at a column; its other lines are indented to that column.

    No word or number is broken, even if it is wider than the terminal.
    """
    start = f"{label:<{column}}"
    lines = textwrap.wrap(
        printable(text),
        max(column + 20, line_width()),
        initial_indent=start,
        subsequent_indent=" " * column,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) or start.rstrip()
