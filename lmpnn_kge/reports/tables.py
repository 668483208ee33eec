"""Results as tables: the paper's row, Hits, missing edges; facts side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmpnn_kge.errors import short
from lmpnn_kge.query.patterns import BETAE, ordered
from lmpnn_kge.reports.document import Cell, Table, Text
from lmpnn_kge.reports.published import ABLATION, Published, published
from lmpnn_kge.reports.record import Results

NONE = "–"

#: MRR by the number of missing edges, then by query type.
Missing = Mapping[int, Mapping[str, float]]


@dataclass(frozen=True)
class Row:
    """Something that has results, or says why not."""

    name: str
    results: Results | None
    state: str | None = None

    @property
    def label(self) -> str:
        return self.name if self.state is None else f"{self.name} ({self.state})"

    @property
    def mrr(self) -> dict[str, float]:
        """By type, then the averages there are; nothing where there are no results."""
        if self.results is None:
            return {}
        values = {name: found.mrr for name, found in self.results.types.items()}
        averages = {"A_P": self.results.positive, "A_N": self.results.negative}
        return values | {name: value for name, value in averages.items() if value is not None}

    @property
    def missing(self) -> Missing:
        types = {} if self.results is None else self.results.types
        found: dict[int, dict[str, float]] = {}
        for name, one in types.items():
            for edges, (mrr, _) in one.by_missing.items():
                found.setdefault(edges, {})[name] = mrr
        return found


def types_of(rows: Sequence[Row]) -> list[str]:
    """All query types that any row has, in the order of the field's tables."""
    return ordered({name for row in rows if row.results for name in row.results.types})


def mrr_table(
    columns: Sequence[str], rows: Sequence[Row], references: Mapping[str, Published]
) -> Table:
    """The paper's row for every row; then published rows, and the differences to them.

    references has the published row to compare with, by the name of a row.
    """
    best = _best(columns, rows)
    cells: list[list[Cell]] = []
    for row in rows:
        shown = [(column, percent(row.mrr.get(column))) for column in columns]
        cells.append([row.label, *(Text(s, strong=s == best.get(c)) for c, s in shown)])
    rules = [len(cells)]
    for name, reference in {published_name(row): row for row in references.values()}.items():
        printed = printed_values(reference)
        cells.append([name, *(f"{printed[c]:.1f}" for c in columns)])
    rules.append(len(cells))
    for row in rows:
        if row.results is not None and row.name in references:
            printed = printed_values(references[row.name])
            both = [(row.mrr.get(column), printed[column]) for column in columns]
            cells.append([f"{row.name} − published", *(_difference(*pair) for pair in both)])
    caption = "MRR on test, per cent"
    caption += "; in bold the best of the rows measured here." if best else "."
    if "A_P" in columns or "A_N" in columns:
        caption += " A_P: the mean of the types without negation; A_N: of those with it."
    return Table(["", *columns], cells, caption, rules=rules)


def _best(columns: Sequence[str], rows: Sequence[Row]) -> dict[str, str]:
    """The best of each column as it is shown, where there is something to compare."""
    found: dict[str, str] = {}
    if sum(row.results is not None for row in rows) > 1:
        for column in columns:
            values = [row.mrr[column] for row in rows if column in row.mrr]
            found |= {column: percent(max(values))} if values else {}
    return found


def hits_table(types: Sequence[str], rows: Sequence[Row]) -> Table:
    cells: list[list[Cell]] = []
    rules = []
    for row in rows:
        found = {} if row.results is None else row.results.types
        rules.append(len(cells))
        for k in dict.fromkeys(k for one in found.values() for k in one.hits):
            values = (found[t].hits.get(k) if t in found else None for t in types)
            cells.append([f"{row.name}, Hits@{k}", *map(percent, values)])
    return Table(["", *types], cells, "Hits on test, per cent.", rules=rules[1:])


def missing_table(types: Sequence[str], rows: Sequence[Row]) -> Table | None:
    """MRR by the number of edges that an answer needs and the observed graph lacks."""
    answers: dict[int, dict[str, int]] = {}
    for row in rows:
        for name, found in ({} if row.results is None else row.results.types).items():
            for edges, (_, count) in found.by_missing.items():
                answers.setdefault(edges, {}).setdefault(name, count)
    cells: list[list[Cell]] = []
    rules = []
    for edges in sorted(answers):
        rules.append(len(cells))
        for row in rows:
            values = row.missing.get(edges, {})
            shown = (percent(values.get(name)) for name in types)
            cells.append([f"{row.name}, {edges} missing", *shown])
        counts = (answers[edges].get(name) for name in types)
        shown = (NONE if count is None else f"{count:,}" for count in counts)
        cells.append([f"answers, {edges} missing", *shown])
    caption = (
        "MRR on test, per cent, of answers that need so many edges that the observed graph lacks, "
        "and how many such answers there are."
    )
    return Table(["", *types], cells, caption, rules=rules[1:]) if cells else None


def published_table(graph: str) -> Table:
    """Every model of the paper once, without its ablations."""
    rows: dict[str, Published] = {}
    for row in published(graph):
        if row.table != ABLATION:
            rows.setdefault(row.name, row)
    columns = [*BETAE, "A_P", "A_N"]
    cells = [
        [row.name, *(f"{printed_values(row)[column]:.1f}" for column in columns)]
        for row in rows.values()
    ]
    caption = f"MRR, per cent, on BetaE's queries over {graph}, as in the paper (arXiv:2301.08859)."
    notes = [f"{row.name}: {row.note}." for row in rows.values() if row.note is not None]
    return Table(["", *columns], cells, " ".join([caption, *notes]))


def published_name(row: Published) -> str:
    return f"published: {row.name}"


def printed_values(row: Published) -> dict[str, float]:
    return {**row.mrr, "A_P": row.positive, "A_N": row.negative}


def facts_table(columns: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> Table:
    """A line for every key, a column for every run."""
    rows: list[list[Cell]] = [
        [key, *(Text(value_text(found.get(key)), code=True) for found in columns.values())]
        for key in keys
    ]
    return Table(["", *columns], rows, numbers=False)


def value_text(value: Any) -> str:
    """A value of a JSON or YAML file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return NONE if value is None or value == "" else short(value, 1000)


def percent(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.1f}"


def _difference(value: float | None, printed: float) -> str:
    """In points of per cent, with its sign."""
    return NONE if value is None else signed(100 * value - printed)


def signed(points: float) -> str:
    text = f"{points:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")
