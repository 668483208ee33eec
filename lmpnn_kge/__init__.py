"""Logical queries over knowledge graph embeddings.

Everything a user or a plugin author needs is importable from here. Names that need torch are
looked up on first use, so that importing the package stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lmpnn_kge.backbones.contract import EQUAL, Backbone, ScoreType
from lmpnn_kge.backbones.hookspecs import hookimpl
from lmpnn_kge.backbones.kernels import complex_product, euclidean, matmul_by_relation, minkowski
from lmpnn_kge.backbones.libkge.model import LibkgeModel
from lmpnn_kge.backbones.plugins import backbone_name, load_backbone
from lmpnn_kge.errors import (
    BackboneError,
    CheckpointError,
    ConfigError,
    DatasetError,
    LmpnnError,
    PluginError,
    QueryError,
    RunError,
)
from lmpnn_kge.files import write_whole

if TYPE_CHECKING:
    from lmpnn_kge.backbones.checkpoint import Checkpoint, Validation
    from lmpnn_kge.backbones.libkge.checkpoint import LibkgeCheckpoint
    from lmpnn_kge.backbones.libkge.write import write_checkpoint
    from lmpnn_kge.backbones.link_prediction import Ranking, rank_triples
    from lmpnn_kge.backbones.open import open_backbone, read_checkpoint
    from lmpnn_kge.backbones.safetensors import save_backbone
    from lmpnn_kge.graph.formats.libkge import LibkgeDataset
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.graph.split import split_file
    from lmpnn_kge.query.parser import parse
    from lmpnn_kge.reports.report import write_report
    from lmpnn_kge.runs.ask import Answer, ask
    from lmpnn_kge.runs.run import Run, train
    from lmpnn_kge.tables.make import make_table
    from lmpnn_kge.training.embedding import pretrain

__version__ = "0.1.0"

__all__ = [
    "EQUAL",
    "Answer",
    "Backbone",
    "BackboneError",
    "Checkpoint",
    "CheckpointError",
    "ConfigError",
    "DatasetError",
    "KnowledgeGraph",
    "LibkgeCheckpoint",
    "LibkgeDataset",
    "LibkgeModel",
    "LmpnnError",
    "PluginError",
    "QueryError",
    "Ranking",
    "Run",
    "RunError",
    "ScoreType",
    "Validation",
    "ask",
    "backbone_name",
    "complex_product",
    "euclidean",
    "hookimpl",
    "load_backbone",
    "make_table",
    "matmul_by_relation",
    "minkowski",
    "open_backbone",
    "parse",
    "pretrain",
    "rank_triples",
    "read_checkpoint",
    "save_backbone",
    "split_file",
    "train",
    "write_checkpoint",
    "write_report",
    "write_whole",
]

_LAZY = {
    "Checkpoint": "lmpnn_kge.backbones.checkpoint",
    "KnowledgeGraph": "lmpnn_kge.graph.knowledge_graph",
    "parse": "lmpnn_kge.query.parser",
    "LibkgeCheckpoint": "lmpnn_kge.backbones.libkge.checkpoint",
    "LibkgeDataset": "lmpnn_kge.graph.formats.libkge",
    "Validation": "lmpnn_kge.backbones.checkpoint",
    "write_checkpoint": "lmpnn_kge.backbones.libkge.write",
    "open_backbone": "lmpnn_kge.backbones.open",
    "read_checkpoint": "lmpnn_kge.backbones.open",
    "pretrain": "lmpnn_kge.training.embedding",
    "Ranking": "lmpnn_kge.backbones.link_prediction",
    "rank_triples": "lmpnn_kge.backbones.link_prediction",
    "write_report": "lmpnn_kge.reports.report",
    "Run": "lmpnn_kge.runs.run",
    "train": "lmpnn_kge.runs.run",
    "make_table": "lmpnn_kge.tables.make",
    "split_file": "lmpnn_kge.graph.split",
    "Answer": "lmpnn_kge.runs.ask",
    "ask": "lmpnn_kge.runs.ask",
    "save_backbone": "lmpnn_kge.backbones.safetensors",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
