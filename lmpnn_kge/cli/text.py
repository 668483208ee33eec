"""Text that fits the terminal: long lines break between words, and a file has no right edge."""

from __future__ import annotations

import shutil
import sys
import textwrap

import click

from lmpnn_kge.errors import printable

#: Width for output that does not go to a terminal: every line stays in one piece.
UNLIMITED = 100_000


def line_width() -> int:
    """Columns of the terminal, or UNLIMITED if the output goes to a file or another program."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()  # None: closed by the caller
    return shutil.get_terminal_size().columns if is_terminal else UNLIMITED


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


class Group(click.Group):
    """Commands with complete summaries, which click would cut to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.get_short_help_str(1000)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
