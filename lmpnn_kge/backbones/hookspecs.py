"""The hooks a plugin implements: the whole of the plugin interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    from lmpnn_kge.backbones.checkpoint import Checkpoint
    from lmpnn_kge.backbones.contract import Backbone

#: pluggy's name for this project, shared by specifications and implementations.
PROJECT = "lmpnn_kge"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(firstresult=True)
def lmpnn_kge_backbone() -> type[Backbone] | None:
    """Return the backbone class that this plugin provides."""


@hookspec(firstresult=True)
def lmpnn_kge_load(file: Path) -> Checkpoint | None:
    """Return what a file holds; None if it is not of this plugin's format.

    CheckpointError says what is wrong with a file that is.
    """
