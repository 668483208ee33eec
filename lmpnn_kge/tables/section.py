"""The section that a report on a table begins with: its rows, beside those of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lmpnn_kge.methods.results import AVERAGES, Results, columns_of, percent_row
from lmpnn_kge.methods.text_table import NONE, Cell, Table, mean_of, percent
from lmpnn_kge.reports.document import Block
from lmpnn_kge.reports.published import Published
from lmpnn_kge.reports.result_tables import ReportRow, missing_table, published_rows, signed
from lmpnn_kge.reports.sections import Section


@dataclass(frozen=True)
class TableRow:
    """A row with its results, one for each seed, and the rows to compare it with."""

    label: str
    results: Sequence[Results]
    base: str | None = None  # the label of the row that it changes
    published: Published | None = None

    def values(self, column: str) -> list[float | None]:
        """The MRR of a type or an average, for each seed."""
        return [results.mrr.get(column) for results in self.results]


def table_section(rows: Sequence[TableRow], *, same_queries: bool = True) -> Section:
    """All rows, then the published ones; and the effect of each change on the averages.

    same_queries says whether the queries may be those of the published rows.
    """
    blocks: list[Block] = [_mrr_table(rows, same_queries)]
    by_label = {row.label: row for row in rows}
    changes = [(row.label, list(_change(row, by_label))) for row in rows]
    if any(cells for _, cells in changes):
        header = [c for a in AVERAGES for c in (a, "change", f"published {a}", "change")]
        caption = (
            "Each row beside that of the paper, in percent; change: the difference from the base."
        )
        shown = [[label, *cells] for label, cells in changes if cells]
        blocks.append(Table(["", *header], shown, caption))
    return Section("The table", blocks, first=True)


def test_section(title: str, rows: Mapping[str, Sequence[Results]]) -> Section:
    """All rows on one set of test queries: MRR with intervals, and MRR by missing edges."""
    shown = [TableRow(label, results) for label, results in rows.items()]
    single = [ReportRow(row.label, row.results[0]) for row in shown if len(row.results) == 1]
    columns = columns_of(row.mrr for row in single)
    types = [name for name in columns if name not in AVERAGES]
    margins: list[list[Cell]] = [
        [row.name, *percent_row([row.results.margins], columns)]
        for row in single
        if row.results is not None and row.results.margins
    ]
    blocks: list[Block] = [_mrr_table(shown, same_queries=False)]
    if margins:
        caption = "Half of the 95 % interval of MRR, by a bootstrap over queries; in percent."
        blocks.append(Table(["", *columns], margins, caption))
    missing = missing_table(types, single)
    return Section(f"On the {title}", [*blocks, *([] if missing is None else [missing])])


def _mrr_table(rows: Sequence[TableRow], same_queries: bool) -> Table:
    columns = columns_of(results.mrr for row in rows for results in row.results)
    cells: list[list[Cell]] = [
        [row.label, *percent_row([results.mrr for results in row.results], columns)] for row in rows
    ]
    printed = [row.published for row in rows if row.published is not None]
    cells += published_rows(columns, printed, same_queries=same_queries)
    seeds = max(len(row.results) for row in rows)
    caption = "MRR on test in percent"
    caption += f"; the mean ± the standard deviation of {seeds} seeds." if seeds > 1 else "."
    return Table(["", *columns], cells, caption, rules=[len(rows)])


def _change(row: TableRow, rows: Mapping[str, TableRow]) -> Iterator[Cell]:
    """The averages and their difference from the base, here and in the paper if it has both."""
    base = rows.get(row.base or "")
    if base is None or row.published is None or base.published is None:
        return
    for name in AVERAGES:
        own, before = mean_of(row.values(name)), mean_of(base.values(name))
        printed, first = row.published.printed[name], base.published.printed[name]
        yield percent(row.values(name))
        yield NONE if own is None or before is None else signed(100 * (own - before))
        yield from (f"{printed:.1f}", signed(printed - first))
