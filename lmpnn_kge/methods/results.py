"""Metrics as the paper's row: the 14 types, A_P and A_N; and as text and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from lmpnn_kge.errors import RunError
from lmpnn_kge.methods.rank import HITS, Method, Metrics, capped, evaluate
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import NEGATIVE, POSITIVE, ordered

AVERAGES = ("A_P", "A_N")


def average(metrics: Mapping[str, Metrics], types: Sequence[str]) -> float | None:
    """The mean MRR of some types; None unless all of them are there."""
    if any(name not in metrics for name in types):
        return None
    return sum(metrics[name].mrr for name in types) / len(types)


def evaluate_split(
    method: Method,
    split: str,
    queries: Mapping[str, Queries],
    folder: object,
    limit: int | None = None,
    progress: Callable[[str, int], object] = lambda name, done: None,
) -> dict[str, Any]:
    """The metrics of a split of the queries in a folder; limit takes so many of each type."""
    ranked = {name: found.ranked for name, found in queries.items()}
    metrics = evaluate(method, ranked if limit is None else capped(ranked, limit), progress)
    if not metrics:
        raise RunError(f"{folder} has no hard answers in {split!r}, nothing to rank")
    return as_json(split, metrics)


def as_json(split: str, metrics: Mapping[str, Metrics]) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "split": split,
        "types": {
            name: {
                "mrr": found.mrr,
                **{f"hits@{k}": found.hits[k] for k in HITS},
                "queries": found.queries,
                "missing_edges": {
                    str(edges): {"mrr": mrr, "answers": answers}
                    for edges, (mrr, answers) in found.by_missing.items()
                },
            }
            for name, found in metrics.items()
        },
        "A_P": average(metrics, POSITIVE),
        "A_N": average(metrics, NEGATIVE),
    }


def as_text(results: Mapping[str, Any]) -> str:
    """The paper's row in per cent, then what it leaves out, from `as_json`."""
    blocks = [compare({"MRR": results})]
    types = {name: results["types"][name] for name in ordered(results["types"])}
    hits = {
        f"Hits@{k}": {name: percent_of([found[f"hits@{k}"]]) for name, found in types.items()}
        for k in HITS
    }
    blocks.append(_columns(hits))
    missing = sorted({int(edges) for found in types.values() for edges in found["missing_edges"]})
    by_edges = {
        f"{edges} missing": {
            name: percent_of([found["missing_edges"].get(str(edges), {}).get("mrr")])
            for name, found in types.items()
        }
        for edges in missing
    }
    if by_edges:
        blocks.append(_columns(by_edges))
    return "\n\n".join(blocks)


def compare(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The MRR of several results in per cent, a row each: the paper's types, then all others."""
    return compare_seeds({label: [results] for label, results in rows.items()})


def compare_seeds(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The same for rows of several results: their mean ± standard deviation."""
    names = columns_of([found for results in rows.values() for found in results])
    paper = [name for name in names if name in (*POSITIVE, *NEGATIVE, *AVERAGES)]
    blocks = []
    for group in (paper, [name for name in names if name not in paper]):
        if group:
            cells = {
                label: {name: percent_of(column(results, name)) for name in group}
                for label, results in rows.items()
            }
            blocks.append(_columns(cells))
    return "\n\n".join(blocks)


def columns_of(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a table over some results has columns for: types, and averages where there are any."""
    types = ordered({name for found in results for name in found["types"]})
    return types + [a for a in AVERAGES if any(found[a] is not None for found in results)]


def column(results: Sequence[Mapping[str, Any]], name: str) -> list[float | None]:
    """One number of each of some results: the MRR of a type, or an average."""
    if name in AVERAGES:
        return [found[name] for found in results]
    return [found["types"].get(name, {}).get("mrr") for found in results]


def mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def percent_of(values: Sequence[float | None]) -> str:
    """The mean in per cent ± the standard deviation of a sample; nothing where one is missing."""
    mean = mean_of(values)
    if mean is None:
        return ""
    spread = stdev(value for value in values if value is not None) if len(values) > 1 else None
    return f"{100 * mean:.1f}" + ("" if spread is None else f"±{100 * spread:.1f}")


def _columns(rows: Mapping[str, Mapping[str, str]]) -> str:
    names = list(next(iter(rows.values())))
    left = max(len(label) for label in rows)
    widths = [max(5, len(n), *(len(cells[n]) for cells in rows.values())) for n in names]
    lines = [" " * left + "".join(f" {n:>{w}}" for n, w in zip(names, widths, strict=True))]
    for label, cells in rows.items():
        shown = zip(cells.values(), widths, strict=True)
        lines.append(f"{label:<{left}}" + "".join(f" {cell:>{width}}" for cell, width in shown))
    return "\n".join(lines)
