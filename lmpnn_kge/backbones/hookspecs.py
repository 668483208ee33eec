"""The hooks of the plugin interface; a plugin implements one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    from lmpnn_kge.backbones.checkpoint import Checkpoint
    from lmpnn_kge.backbones.contract import Backbone
    from lmpnn_kge.tracker import Tracker

#: The project name by which pluggy matches specifications and implementations.
PROJECT = "lmpnn_kge"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(firstresult=True)
def lmpnn_kge_backbone() -> type[Backbone] | None:
    """Return the backbone class that this plugin provides."""


@hookspec(firstresult=True)
def lmpnn_kge_load(file: Path) -> Checkpoint | None:
    """Read a file; return None if it is not in this plugin's format.

    Raise CheckpointError if it is in this format but cannot be used.
    """


@hookspec(firstresult=True)
def lmpnn_kge_tracker() -> type[Tracker] | None:
    """Return the tracker class that this plugin provides; PluginError names a missing package."""
