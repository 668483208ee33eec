"""Metrics as the paper's row: the 14 types, A_P and A_N; and as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmpnn_kge.evaluation import HITS, Metrics
from lmpnn_kge.query.patterns import NEGATIVE, POSITIVE, ordered


def average(metrics: Mapping[str, Metrics], types: Sequence[str]) -> float | None:
    """The mean MRR of some types; None unless all of them are there."""
    if any(name not in metrics for name in types):
        return None
    return sum(metrics[name].mrr for name in types) / len(types)


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
    hits = {f"Hits@{k}": {name: found[f"hits@{k}"] for name, found in types.items()} for k in HITS}
    blocks.append(_columns(hits))
    missing = sorted({int(edges) for found in types.values() for edges in found["missing_edges"]})
    by_edges = {
        f"{edges} missing": {
            name: found["missing_edges"].get(str(edges), {}).get("mrr")
            for name, found in types.items()
        }
        for edges in missing
    }
    if by_edges:
        blocks.append(_columns(by_edges))
    return "\n\n".join(blocks)


def compare(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The MRR of several results in per cent, a row each: the paper's types, then all others."""
    names = ordered({name for found in rows.values() for name in found["types"]})
    paper = [name for name in names if name in (*POSITIVE, *NEGATIVE)]
    others = names[len(paper) :]
    averages = [a for a in ("A_P", "A_N") if any(found[a] is not None for found in rows.values())]
    blocks = []
    for group, more in ((paper, averages), (others, [])):
        if group:
            cells = {
                label: {
                    **{name: results["types"].get(name, {}).get("mrr") for name in group},
                    **{name: results[name] for name in more},
                }
                for label, results in rows.items()
            }
            blocks.append(_columns(cells))
    return "\n\n".join(blocks)


def _columns(rows: Mapping[str, Mapping[str, float | None]]) -> str:
    names = list(next(iter(rows.values())))
    left = max(len(label) for label in rows)
    widths = [max(5, len(name)) for name in names]
    lines = [" " * left + "".join(f" {n:>{w}}" for n, w in zip(names, widths, strict=True))]
    for label, values in rows.items():
        cells = ("" if v is None else f"{100 * v:.1f}" for v in values.values())
        lines.append(
            f"{label:<{left}}" + "".join(f" {c:>{w}}" for c, w in zip(cells, widths, strict=True))
        )
    return "\n".join(lines)
