"""The hooks a backbone plugin implements: the whole of the plugin interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from lmpnn_kge.backbone import Backbone

#: pluggy's name for this project, shared by specifications and implementations.
PROJECT = "lmpnn_kge"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(firstresult=True)
def lmpnn_kge_backbone() -> type[Backbone] | None:
    """Return the backbone class that this plugin provides."""
