"""Tables as data, and as text that fits a terminal; numbers as cells in percent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from textwrap import wrap

from lmpnn_kge.errors import printable

#: The columns of a terminal, unless its user changed them.
WIDTH = 80

#: Stands for a number that is missing.
NONE = "–"

#: Numbers of one digit and of three take the same space, so that the columns of tables align.
NARROWEST = 5


@dataclass(frozen=True)
class Text:
    """A cell that stands out."""

    text: str
    strong: bool = False
    code: bool = False


Cell = str | Text


@dataclass(frozen=True)
class Table:
    """Rows under a header; the first column names the row."""

    header: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    numbers: bool = True  # whether the other columns are aligned on the right
    rules: Sequence[int] = ()  # the rows that begin another group

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.header) for row in self.rows)

    @property
    def texts(self) -> list[list[str]]:
        """The header and all rows as plain text."""
        return [
            [cell if isinstance(cell, str) else cell.text for cell in row]
            for row in (self.header, *self.rows)
        ]

    def to_text(self, width: int = WIDTH) -> str:
        """Plain text without the caption, in as many blocks of columns as the width requires."""
        longest = width // 2 - 1  # so that the first column and any other one fit side by side
        rows = [[_wrapped(cell, longest) for cell in row] for row in (self.header, *self.rows)]
        columns = list(zip(*rows, strict=True))
        widths = [max(len(line) for cell in column for line in cell) for column in columns]
        if self.numbers:
            widths[1:] = [max(NARROWEST, needed) for needed in widths[1:]]
        blocks = []
        for block in _blocks(widths, width):
            shown = [[row[column] for column in block] for row in rows]
            space = [widths[column] for column in block]
            blocks.append("\n".join(_aligned(row, space, self.numbers) for row in shown))
        return "\n\n".join(blocks)


def _wrapped(cell: Cell, longest: int) -> list[str]:
    """The text of a cell in lines."""
    text = cell.text if isinstance(cell, Text) else cell
    return wrap(printable(text), longest) or [""]


def _blocks(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Numbers of columns that fit side by side; every block begins with the first column."""
    block, used = [0], widths[0]
    for column, needed in enumerate(widths[1:], start=1):
        if len(block) > 1 and used + 1 + needed > width:
            yield block
            block, used = [0], widths[0]
        block.append(column)
        used += 1 + needed
    yield block


def _aligned(row: Sequence[list[str]], widths: Sequence[int], numbers: bool) -> str:
    """A row of cells as text; a cell of few lines stands beside the last line of the others."""
    height, align = max(map(len, row)), str.rjust if numbers else str.ljust
    lines = []
    for line in zip(*([""] * (height - len(cell)) + cell for cell in row), strict=True):
        others = map(align, line[1:], widths[1:])
        lines.append(" ".join([line[0].ljust(widths[0]), *others]).rstrip())
    return "\n".join(lines)


def percent(values: Sequence[float | None]) -> str:
    """The mean in percent, ± the standard deviation if there are several; – if one is missing."""
    mean = mean_of(values)
    if mean is None:
        return NONE
    known = [value for value in values if value is not None]
    return f"{100 * mean:.1f}" + (f"±{100 * stdev(known):.1f}" if len(known) > 1 else "")


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of values; None if there are none, or if one of them is None."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
