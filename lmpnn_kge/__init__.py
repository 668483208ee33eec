"""Logical queries over knowledge graph embeddings.

Everything a user or a plugin author needs is importable from here. Names that need torch are
looked up on first use, so that importing the package stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lmpnn_kge.backbone import EQUAL, Backbone, ScoreType
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
from lmpnn_kge.hookspecs import hookimpl
from lmpnn_kge.kernels import complex_product, euclidean, matmul_by_relation, minkowski
from lmpnn_kge.libkge.model import LibkgeModel
from lmpnn_kge.plugins import backbone_name, load_backbone
from lmpnn_kge.whole import write_whole

if TYPE_CHECKING:
    from lmpnn_kge_safetensors import save_backbone

    from lmpnn_kge.asking import Answer, ask
    from lmpnn_kge.checkpoint import Checkpoint, Validation
    from lmpnn_kge.kg import KnowledgeGraph
    from lmpnn_kge.libkge.checkpoint import LibkgeCheckpoint
    from lmpnn_kge.libkge.dataset import LibkgeDataset
    from lmpnn_kge.libkge.writing import write_checkpoint
    from lmpnn_kge.opening import open_backbone, read_checkpoint
    from lmpnn_kge.pretraining import pretrain
    from lmpnn_kge.query.parser import parse
    from lmpnn_kge.ranking import Ranking, rank_triples
    from lmpnn_kge.report import write_report
    from lmpnn_kge.run import Run, train
    from lmpnn_kge.run_table import make_table
    from lmpnn_kge.splitting import split_file

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
    "Checkpoint": "lmpnn_kge.checkpoint",
    "KnowledgeGraph": "lmpnn_kge.kg",
    "parse": "lmpnn_kge.query.parser",
    "LibkgeCheckpoint": "lmpnn_kge.libkge.checkpoint",
    "LibkgeDataset": "lmpnn_kge.libkge.dataset",
    "Validation": "lmpnn_kge.checkpoint",
    "write_checkpoint": "lmpnn_kge.libkge.writing",
    "open_backbone": "lmpnn_kge.opening",
    "read_checkpoint": "lmpnn_kge.opening",
    "pretrain": "lmpnn_kge.pretraining",
    "Ranking": "lmpnn_kge.ranking",
    "rank_triples": "lmpnn_kge.ranking",
    "write_report": "lmpnn_kge.report",
    "Run": "lmpnn_kge.run",
    "train": "lmpnn_kge.run",
    "make_table": "lmpnn_kge.run_table",
    "split_file": "lmpnn_kge.splitting",
    "Answer": "lmpnn_kge.asking",
    "ask": "lmpnn_kge.asking",
    "save_backbone": "lmpnn_kge_safetensors",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
