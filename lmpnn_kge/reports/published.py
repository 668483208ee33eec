"""The numbers that the LMPNN paper prints, all of them, as data: `published.yaml`."""

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

#: The one that compares embeddings trained with LibKGE.
BACKBONES = "tb:LMPNN-KGs"

#: The one that changes one setting at a time, and what it calls the row without a change.
ABLATION, BEST = "tb:ablation", "best choice"


@dataclass(frozen=True)
class Published:
    """One row of one table: MRR in per cent."""

    table: str  # its label in the paper
    graph: str
    model: str
    mrr: Mapping[str, float]  # by query type
    positive: float  # A_P as printed
    negative: float  # A_N as printed
    source: str  # where the paper takes it from
    backbone: str | None = None  # the embedding below the model
    dim: int | None = None
    setting: str | None = None  # what differs from the model's own settings
    note: str | None = None  # what is odd about the row

    @property
    def name(self) -> str:
        """The model with what sets it apart from others of the same name."""
        backbone = None if self.backbone is None else f"{self.backbone} {self.dim}D"
        marks = ", ".join(mark for mark in (backbone, self.setting) if mark is not None)
        return f"{self.model} ({marks})" if marks else self.model


@dataclass(frozen=True)
class PublishedBackbone:
    """Link prediction with an embedding that the paper builds on, in per cent."""

    graph: str
    backbone: str
    dim: int
    mrr: float
    hits: Mapping[int, float]


def published(
    graph: str | None = None,
    *,
    table: str | None = None,
    model: str | None = None,
    backbone: str | None = None,
) -> list[Published]:
    """The rows of all tables in their order, or only those of a graph, table, model, backbone.

    Graphs and backbones go by any spelling: fb15k-237 or FB15k-237-betae is FB15k-237.
    """
    return [
        row
        for row in _rows()
        if (graph is None or _plain(row.graph) == _plain(graph))
        and table in (None, row.table)
        and model in (None, row.model)
        and (backbone is None or _plain(row.backbone or "") == _plain(backbone))
    ]


def published_backbones() -> list[PublishedBackbone]:
    """The embeddings of the paper's comparison of six, as trained with LibKGE."""
    return [
        PublishedBackbone(
            entry["graph"],
            entry["backbone"],
            entry["dim"],
            entry["mrr"],
            MappingProxyType({k: entry[f"hits@{k}"] for k in (1, 3, 10)}),
        )
        for entry in _content()["backbones"]
    ]


def published_graph(name: str) -> str:
    """The paper's spelling of a graph; LmpnnError where it has no such graph."""
    graphs = dict.fromkeys(row.graph for row in _rows())
    for graph in graphs:
        if _plain(graph) == _plain(name):
            return graph
    raise LmpnnError(f"nothing is published on {name!r}; {choices(name, graphs)}")


def _plain(name: str) -> str:
    letters = re.sub(r"[\W_]", "", name.casefold())
    return letters.removesuffix("betae") or letters


@cache
def _rows() -> tuple[Published, ...]:
    content = _content()
    rows = []
    for table, found in content["tables"].items():
        for entry in found["rows"]:
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


@cache
def _content() -> Any:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))
