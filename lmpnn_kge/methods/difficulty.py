"""Results of several methods beside each other, by the number of missing edges."""

from __future__ import annotations

from collections.abc import Mapping

from lmpnn_kge.methods.results import Results, columns_of, percent_row
from lmpnn_kge.methods.text_table import Table


def by_difficulty(rows: Mapping[str, Results]) -> str:
    """MRR in percent, a table for each number of missing edges that answers need."""
    numbers = sorted({edges for results in rows.values() for edges in results.missing})
    return "\n\n".join(_table(edges, rows) for edges in numbers)


def _table(edges: int, rows: Mapping[str, Results]) -> str:
    values = {label: results.missing.get(edges, {}) for label, results in rows.items()}
    columns = columns_of(values.values())
    cells = [[label, *percent_row([row], columns)] for label, row in values.items()]
    return Table([f"{edges} missing", *columns], cells).to_text()
