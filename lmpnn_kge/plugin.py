"""The names for plugin authors: the contracts, the hook marker and tools to read files.

Names that need torch are imported on first use, so that plugins can be listed without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.hookspecs import hookimpl
from lmpnn_kge.backbones.kernels import (
    complex_product,
    euclidean,
    matmul_by_relation,
    minkowski,
    take_rows,
)
from lmpnn_kge.backbones.libkge.model import LibkgeModel
from lmpnn_kge.backbones.messages import EQUAL, ScoreType
from lmpnn_kge.errors import BackboneError, CheckpointError, PluginError
from lmpnn_kge.tracker import Tracker

if TYPE_CHECKING:
    from lmpnn_kge.backbones.checkpoint import Checkpoint, Validation
    from lmpnn_kge.backbones.discovery import backbone_name
    from lmpnn_kge.backbones.libkge.checkpoint import LibkgeCheckpoint, read_libkge
    from lmpnn_kge.backbones.safetensors import read_safetensors

__all__ = [
    "EQUAL",
    "Backbone",
    "BackboneError",
    "Checkpoint",
    "CheckpointError",
    "LibkgeCheckpoint",
    "LibkgeModel",
    "PluginError",
    "ScoreType",
    "Tracker",
    "Validation",
    "backbone_name",
    "complex_product",
    "euclidean",
    "hookimpl",
    "matmul_by_relation",
    "minkowski",
    "read_libkge",
    "read_safetensors",
    "take_rows",
]

_LAZY = {
    "backbone_name": "lmpnn_kge.backbones.discovery",
    "Checkpoint": "lmpnn_kge.backbones.checkpoint",
    "LibkgeCheckpoint": "lmpnn_kge.backbones.libkge.checkpoint",
    "Validation": "lmpnn_kge.backbones.checkpoint",
    "read_libkge": "lmpnn_kge.backbones.libkge.checkpoint",
    "read_safetensors": "lmpnn_kge.backbones.safetensors",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return __all__
