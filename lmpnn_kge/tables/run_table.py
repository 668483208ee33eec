"""A finished table: its results on each set of test queries, and how they are printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lmpnn_kge.methods.results import AVERAGES, Results, compare, percent_table
from lmpnn_kge.methods.text_table import Table
from lmpnn_kge.tables.test_set import TestSet


@dataclass(frozen=True, eq=False)
class Tested:
    """The results of a table on a test set."""

    on: TestSet
    rows: Mapping[str, Sequence[Results]]  # by label, one for each seed
    alone: Mapping[str, Results]  # of the rows that have no network


@dataclass(frozen=True)
class RunTable:
    """A finished table: its folder, its results and its report."""

    folder: Path
    rows: Mapping[str, Sequence[Results]]  # on test, one for each seed
    report: Path
    others: Mapping[str, Mapping[str, Sequence[Results]]] = field(default_factory=dict)
    # the same on other test queries, by their title

    def __str__(self) -> str:
        """The MRR of every row in percent; with several seeds, the mean ± standard deviation."""
        parts = [_with_margins(self.rows)]
        for title, rows in self.others.items():
            parts += [f"{title}:", _with_margins(rows)]
        return "\n\n".join(parts)

    def to_tables(self) -> list[Table]:
        """The same as one table for each set of test queries."""
        sets = {"": self.rows, **self.others}
        return [
            replace(
                percent_table({label: [r.mrr for r in row] for label, row in rows.items()}),
                caption=title,
            )
            for title, rows in sets.items()
        ]


def _with_margins(rows: Mapping[str, Sequence[Results]]) -> str:
    """The MRR of rows, then half the width of the intervals of rows with one seed."""
    margins = {
        label: {name: results[0].margins[name] for name in AVERAGES if name in results[0].margins}
        for label, results in rows.items()
        if len(results) == 1
    }
    margins = {label: values for label, values in margins.items() if values}
    if not margins:
        return compare(rows)
    table = percent_table({label: [values] for label, values in margins.items()})
    return f"{compare(rows)}\n\n± half of the 95 % interval:\n\n{table.to_text()}"
