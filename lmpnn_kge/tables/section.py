"""What the report on a table begins with: its rows, and what the paper prints for the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmpnn_kge.methods.results import AVERAGES, column, columns_of, mean_of, percent_of
from lmpnn_kge.reports.document import Block, Cell, Table
from lmpnn_kge.reports.published import Published
from lmpnn_kge.reports.report import Section
from lmpnn_kge.reports.tables import NONE, printed_values, published_name, signed


@dataclass(frozen=True)
class Line:
    """A row with results, one for each seed, and what it is compared with."""

    label: str
    results: Sequence[Mapping[str, Any]]
    base: str | None = None  # the label of the row that it changes
    published: Published | None = None


def table_section(lines: Sequence[Line]) -> Section:
    """All rows, then the published ones; and what each change does to the averages."""
    blocks: list[Block] = [_rows(lines)]
    by_label = {line.label: line for line in lines}
    changes = [list(_change(line, by_label)) for line in lines]
    if any(cells for cells in changes):
        header = [c for a in AVERAGES for c in (a, "change", f"published {a}", "change")]
        caption = "Each row beside what the paper prints for it, per cent; change: from the base."
        rows = [[line.label, *cells] for line, cells in zip(lines, changes, strict=True) if cells]
        blocks.append(Table(["", *header], rows, caption))
    return Section("The table", blocks, first=True)


def _rows(lines: Sequence[Line]) -> Table:
    columns = columns_of([found for line in lines for found in line.results])
    cells: list[list[Cell]] = [
        [line.label, *(percent_of(column(line.results, name)) or NONE for name in columns)]
        for line in lines
    ]
    rows = {published_name(line.published): line.published for line in lines if line.published}
    for name, row in rows.items():
        printed = printed_values(row)
        cells.append([name, *(f"{printed[c]:.1f}" if c in printed else NONE for c in columns)])
    seeds = max(len(line.results) for line in lines)
    caption = "MRR on test, per cent"
    caption += f"; the mean ± the standard deviation of {seeds} seeds." if seeds > 1 else "."
    return Table(["", *columns], cells, caption, rules=[len(lines)])


def _change(line: Line, lines: Mapping[str, Line]) -> Iterator[Cell]:
    """The averages with their difference from the base, here and in the paper, if it has both."""
    base = lines.get(line.base or "")
    if base is None or line.published is None or base.published is None:
        return
    for name in AVERAGES:
        own, before = (mean_of(column(one.results, name)) for one in (line, base))
        printed, first = (printed_values(row)[name] for row in (line.published, base.published))
        yield percent_of(column(line.results, name)) or NONE
        yield NONE if own is None or before is None else signed(100 * (own - before))
        yield from (f"{printed:.1f}", signed(printed - first))
