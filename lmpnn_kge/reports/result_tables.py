"""Results as tables of a report: MRR as in the paper, Hits, missing edges; facts side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmpnn_kge.errors import short
from lmpnn_kge.methods.results import AVERAGES, Results, percent_row
from lmpnn_kge.methods.text_table import NONE, Cell, Table, Text, percent
from lmpnn_kge.query.patterns import BETAE
from lmpnn_kge.reports.published import ABLATION, Published, published


@dataclass(frozen=True)
class ReportRow:
    """A run or another method: its results on test, or the reason why there are none."""

    name: str
    results: Results | None
    state: str | None = None
    is_sure: bool = True  # whether its queries are known to be those of the other rows

    @classmethod
    def beside(cls, name: str, results: Results) -> ReportRow:
        """A row from a file; an older version did not record the queries of its results."""
        if results.origin is not None:
            return cls(name, results)
        return cls(name, results, "its queries are not recorded", is_sure=False)

    @property
    def label(self) -> str:
        return self.name if self.state is None else f"{self.name} ({self.state})"

    @property
    def mrr(self) -> dict[str, float]:
        """MRR by type, then the averages; empty without results."""
        return {} if self.results is None else self.results.mrr

    @property
    def hits(self) -> dict[int, dict[str, float]]:
        """Hits@k by k, then by type; empty without results."""
        return {} if self.results is None else self.results.hits

    @property
    def missing(self) -> dict[int, dict[str, float]]:
        """MRR by the number of missing edges, then by type; empty without results."""
        return {} if self.results is None else self.results.missing


def mrr_table(
    columns: Sequence[str],
    rows: Sequence[ReportRow],
    references: Mapping[str, Published],
    *,
    same_queries: bool = True,
) -> Table:
    """The MRR of every row; then published rows, and the differences from them.

    references has the published row to compare with, by the name of a row. There are no differences
    from published rows on other queries than these.
    """
    best = _best(columns, rows)
    cells: list[list[Cell]] = []
    for row in rows:
        shown = zip(percent_row([row.mrr], columns), best, strict=True)
        cells.append([
            row.label, *(Text(text, strong=row.is_sure and text == most) for text, most in shown)
        ])  # fmt: skip
    rules = [len(cells)]
    cells += published_rows(columns, references.values(), same_queries=same_queries)
    rules.append(len(cells))
    for row in rows if same_queries else ():
        if row.results is not None and row.name in references:
            printed, mrr = references[row.name].printed, row.mrr
            points = [_difference(mrr.get(column), printed[column]) for column in columns]
            cells.append([f"{row.name} − published", *points])
    caption = "MRR on test in percent"
    caption += "; in bold the best of the rows measured here." if any(best) else "."
    if not AVERAGES.keys().isdisjoint(columns):
        caption += " A_P: the mean of the types without negation; A_N: of those with it."
    return Table(["", *columns], cells, caption, rules=rules)


def _best(columns: Sequence[str], rows: Sequence[ReportRow]) -> list[str | None]:
    """The best value of each column as it is shown; None if there is nothing to compare."""
    rows = [row for row in rows if row.results is not None and row.is_sure]
    if len(rows) < 2:
        return [None] * len(columns)
    known = [[row.mrr[column] for row in rows if column in row.mrr] for column in columns]
    return [percent([max(values)]) if values else None for values in known]


def published_rows(
    columns: Sequence[str], rows: Iterable[Published], *, same_queries: bool
) -> list[list[Cell]]:
    """The cells of published rows, each of them once; labelled if they are on other queries."""
    return [
        [
            row.label(same_queries),
            *(f"{row.printed[c]:.1f}" if c in row.printed else NONE for c in columns),
        ]
        for row in {row.name: row for row in rows}.values()
    ]


def hits_table(types: Sequence[str], rows: Sequence[ReportRow]) -> Table:
    """Hits@k of every row."""
    cells: list[list[Cell]] = []
    rules = []
    for row in rows:
        rules.append(len(cells))
        for k, values in row.hits.items():
            cells.append([f"{row.name}, Hits@{k}", *percent_row([values], types)])
    return Table(["", *types], cells, "Hits on test in percent.", rules=rules[1:])


def missing_table(types: Sequence[str], rows: Sequence[ReportRow]) -> Table | None:
    """MRR by the number of edges that an answer needs and the observed graph lacks."""
    answers = _answers(rows)
    cells: list[list[Cell]] = []
    rules = []
    for edges in sorted(answers):
        rules.append(len(cells))
        for row in rows:
            values = row.missing.get(edges, {})
            cells.append([f"{row.name}, {edges} missing", *percent_row([values], types)])
        counts = (answers[edges].get(name) for name in types)
        shown = (NONE if count is None else f"{count:,}" for count in counts)
        cells.append([f"answers, {edges} missing", *shown])
    caption = (
        "MRR on test in percent by the number of edges that an answer needs and the observed graph "
        "lacks, and the number of such answers."
    )
    return Table(["", *types], cells, caption, rules=rules[1:]) if cells else None


def _answers(rows: Sequence[ReportRow]) -> dict[int, dict[str, int]]:
    """The number of hard answers by missing edges, then by type; all rows have the same queries."""
    answers: dict[int, dict[str, int]] = {}
    for row in rows:
        for name, result in ({} if row.results is None else row.results.types).items():
            for edges, (_, count) in result.by_missing.items():
                answers.setdefault(edges, {}).setdefault(name, count)
    return answers


def counting_table(columns: Sequence[str], rows: Sequence[ReportRow]) -> Table | None:
    """How well numbers of answers are predicted; None if no row predicts any."""
    cells: list[list[Cell]] = []
    rules = []
    for row in rows:
        if row.results is None or row.results.counting is None:
            continue
        rules.append(len(cells))
        counting = row.results.counting
        for metric, table in (("MAPE", counting.errors), ("ρ", counting.correlations)):
            for name, values in table.items():
                cells.append([f"{row.name}: {metric}, {name}", *percent_row([values], columns)])
    caption = (
        "The number of all answers on the full graph, in percent: mean absolute percentage error "
        "and Spearman's correlation. Baselines: the number of answers by training edges, and the "
        "median of the type for every query."
    )
    return Table(["", *columns], cells, caption, rules=rules[1:]) if cells else None


def published_table(graph: str, other: str | None = None) -> Table:
    """Every model of the paper once, without its ablations; other is a graph that this is not."""
    rows: dict[str, Published] = {}
    for row in published(graph):
        if row.table != ABLATION:
            rows.setdefault(row.name, row)
    columns = [*BETAE, *AVERAGES]
    cells = [
        [row.name, *(f"{row.printed[column]:.1f}" for column in columns)] for row in rows.values()
    ]
    caption = f"MRR in percent on BetaE's queries over {graph}, as in the paper (arXiv:2301.08859)."
    if other is not None:
        caption += f" This is another graph than {other}: the numbers cannot be compared."
    notes = [f"{row.name}: {row.note}." for row in rows.values() if row.note is not None]
    return Table(["", *columns], cells, " ".join([caption, *notes]))


def facts_table(columns: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> Table:
    """A line for every key, a column for every run."""
    rows: list[list[Cell]] = [
        [key, *(Text(value_text(facts.get(key)), code=True) for facts in columns.values())]
        for key in keys
    ]
    return Table(["", *columns], rows, numbers=False)


def value_text(value: object) -> str:
    """A value of a JSON or YAML file as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return NONE if value is None or value == "" else short(value, 1000)


def _difference(value: float | None, printed: float) -> str:
    """The difference of a fraction from a printed percentage."""
    return NONE if value is None else signed(100 * value - printed)


def signed(points: float) -> str:
    """A difference in percentage points, with its sign."""
    text = f"{points:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")
