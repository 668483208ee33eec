"""All results on answering queries that the LMPNN paper prints, read from `published.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from lmpnn_kge.errors import LmpnnError, choices

FILE = Path(__file__).with_name("published.yaml")

#: The table of the paper that its claims rest on.
MAJOR = "tb:major"

#: The table that compares embeddings trained with LibKGE.
BACKBONES = "tb:LMPNN-KGs"

#: The table that changes one setting at a time, and its name for the row without a change.
ABLATION, BEST = "tb:ablation", "best choice"


@dataclass(frozen=True)
class Published:
    """One row of one table: MRR in percent."""

    table: str  # its label in the paper
    graph: str
    model: str
    mrr: Mapping[str, float]  # by query type
    positive: float  # A_P as printed
    negative: float  # A_N as printed
    source: str  # the paper's own experiment, reproduced, or reported by others
    backbone: str | None = None  # the embedding that the model builds on
    dim: int | None = None
    setting: str | None = None  # the difference from the model's own settings
    note: str | None = None  # a peculiarity of the row

    @property
    def name(self) -> str:
        """The model, with its backbone and setting if it has any: other rows share the model."""
        backbone = None if self.backbone is None else f"{self.backbone} {self.dim}D"
        marks = ", ".join(mark for mark in (backbone, self.setting) if mark is not None)
        return f"{self.model} ({marks})" if marks else self.model

    def label(self, same_queries: bool) -> str:
        """Its label beside rows that were measured here, perhaps on other queries."""
        return f"published{'' if same_queries else ', on other queries'}: {self.name}"

    @property
    def printed(self) -> dict[str, float]:
        """All numbers in percent: MRR by query type, A_P and A_N."""
        return {**self.mrr, "A_P": self.positive, "A_N": self.negative}


def published(
    graph: str | None = None,
    *,
    table: str | None = None,
    model: str | None = None,
    backbone: str | None = None,
) -> list[Published]:
    """The rows of all tables in their order, or only those of a graph, table, model or backbone.

    Graphs and backbones may be spelled in any way: fb15k-237 and FB15k-237-betae are FB15k-237.
    """
    return [
        row
        for row in _rows()
        if (graph is None or _plain(row.graph) == _plain(graph))
        and table in (None, row.table)
        and model in (None, row.model)
        and (backbone is None or _plain(row.backbone or "") == _plain(backbone))
    ]


def published_graph(name: str) -> str:
    """The paper's spelling of a graph; LmpnnError if the paper has no results on it."""
    graphs = dict.fromkeys(row.graph for row in _rows())
    for graph in graphs:
        if _plain(graph) == _plain(name):
            return graph
    raise LmpnnError(f"nothing is published on {name!r}; {choices(name, graphs)}")


def is_published_graph(graph: str, name: str, entities: int, relations: int) -> bool:
    """Whether a graph of this name or of these sizes is a graph of the paper."""
    sizes = _content()["graphs"][graph]
    same_sizes = entities in sizes["entities"] and relations == sizes["relations"]
    return _plain(name) == _plain(graph) or same_sizes


def _plain(name: str) -> str:
    letters = re.sub(r"[\W_]", "", name.casefold())
    return letters.removesuffix("betae") or letters


@cache
def _content() -> Any:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


@cache
def _rows() -> tuple[Published, ...]:
    content = _content()
    rows = []
    for table, section in content["tables"].items():
        for entry in section["rows"]:
            row = dict(entry)
            values = dict(zip(content["columns"], row.pop("values"), strict=True))
            positive, negative = values.pop("A_P"), values.pop("A_N")
            source = content["sources"][row.pop("source")]
            rows.append(
                Published(
                    table,
                    mrr=MappingProxyType(values),
                    positive=positive,
                    negative=negative,
                    source=source,
                    **row,
                )
            )
    return tuple(rows)
