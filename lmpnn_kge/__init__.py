"""Logical queries over knowledge graph embeddings.

These are the names for users. Authors of plugins import from `lmpnn_kge.plugin`. A name is imported
on first use, so that importing the package stays cheap.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmpnn_kge.backbones.discovery import backbone_class
    from lmpnn_kge.backbones.libkge.write import write_checkpoint
    from lmpnn_kge.backbones.link_prediction import Ranking, rank_triples
    from lmpnn_kge.backbones.open import open_backbone, read_checkpoint
    from lmpnn_kge.backbones.safetensors import save_backbone
    from lmpnn_kge.errors import (
        BackboneError,
        CalibrationError,
        CheckpointError,
        ConfigError,
        DatasetError,
        FileError,
        LmpnnError,
        PluginError,
        QueryError,
        RunError,
        TimeLimitError,
    )
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.graph.profile import GraphProfile
    from lmpnn_kge.graph.split import split_file
    from lmpnn_kge.methods.ranks import Ranks
    from lmpnn_kge.methods.results import Results
    from lmpnn_kge.queries.hard import HARD_PRESET
    from lmpnn_kge.queries.rules import Rules
    from lmpnn_kge.queries.sample import BETAE_PRESET, sample_store
    from lmpnn_kge.queries.store import QueryStore
    from lmpnn_kge.query.parser import parse
    from lmpnn_kge.query.sparql.write import to_sparql
    from lmpnn_kge.reports.comparison import compare_ranks
    from lmpnn_kge.reports.report import write_report
    from lmpnn_kge.runs.answer import Answer
    from lmpnn_kge.runs.ask import ask
    from lmpnn_kge.runs.baselines import evaluate_method
    from lmpnn_kge.runs.facts import evaluate_facts
    from lmpnn_kge.runs.predict import predict
    from lmpnn_kge.runs.predictions import Prediction, Predictions
    from lmpnn_kge.runs.pretrain import pretrain
    from lmpnn_kge.runs.run import Run
    from lmpnn_kge.runs.train import train
    from lmpnn_kge.tables.make import make_table
    from lmpnn_kge.tuning.tune import tune
    from lmpnn_kge.work.deadline import time_limit
    from lmpnn_kge.work.listener import Listener

__version__ = "0.1.0"

#: Every public name with its module.
_MODULES = {
    "BETAE_PRESET": "queries.sample",
    "HARD_PRESET": "queries.hard",
    "Answer": "runs.answer",
    "BackboneError": "errors",
    "CalibrationError": "errors",
    "CheckpointError": "errors",
    "ConfigError": "errors",
    "DatasetError": "errors",
    "FileError": "errors",
    "GraphProfile": "graph.profile",
    "KnowledgeGraph": "graph.knowledge_graph",
    "Listener": "work.listener",
    "LmpnnError": "errors",
    "PluginError": "errors",
    "Prediction": "runs.predictions",
    "Predictions": "runs.predictions",
    "QueryError": "errors",
    "QueryStore": "queries.store",
    "Ranking": "backbones.link_prediction",
    "Ranks": "methods.ranks",
    "Results": "methods.results",
    "Run": "runs.run",
    "RunPool": "runs.pool",
    "Rules": "queries.rules",
    "RunError": "errors",
    "TimeLimitError": "errors",
    "ask": "runs.ask",
    "backbone_class": "backbones.discovery",
    "compare_ranks": "reports.comparison",
    "evaluate_facts": "runs.facts",
    "evaluate_method": "runs.baselines",
    "make_table": "tables.make",
    "open_backbone": "backbones.open",
    "parse": "query.parser",
    "predict": "runs.predict",
    "pretrain": "runs.pretrain",
    "rank_triples": "backbones.link_prediction",
    "read_checkpoint": "backbones.open",
    "sample_store": "queries.sample",
    "save_backbone": "backbones.safetensors",
    "split_file": "graph.split",
    "time_limit": "work.deadline",
    "to_sparql": "query.sparql.write",
    "train": "runs.train",
    "tune": "tuning.tune",
    "write_checkpoint": "backbones.libkge.write",
    "write_report": "reports.report",
}

#: Names of an earlier version, and what they are called now.
_RENAMED = {"LibkgeDataset": "KnowledgeGraph", "load_backbone": "backbone_class"}

__all__ = [
    "BETAE_PRESET",
    "HARD_PRESET",
    "Answer",
    "BackboneError",
    "CalibrationError",
    "CheckpointError",
    "ConfigError",
    "DatasetError",
    "FileError",
    "GraphProfile",
    "KnowledgeGraph",
    "Listener",
    "LmpnnError",
    "PluginError",
    "Prediction",
    "Predictions",
    "QueryError",
    "QueryStore",
    "Ranking",
    "Ranks",
    "Results",
    "Rules",
    "Run",
    "RunError",
    "RunPool",
    "TimeLimitError",
    "__version__",
    "ask",
    "backbone_class",
    "compare_ranks",
    "evaluate_facts",
    "evaluate_method",
    "make_table",
    "open_backbone",
    "parse",
    "predict",
    "pretrain",
    "rank_triples",
    "read_checkpoint",
    "sample_store",
    "save_backbone",
    "split_file",
    "time_limit",
    "to_sparql",
    "train",
    "tune",
    "write_checkpoint",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(f"lmpnn_kge.{name} is now called {new}", DeprecationWarning, stacklevel=2)
        name = new
    if name in _MODULES:
        return getattr(import_module(f"lmpnn_kge.{_MODULES[name]}"), name)
    plugin = import_module("lmpnn_kge.plugin")
    if name in plugin.__all__:  # plugins found these names here before there was `plugin`
        return getattr(plugin, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
