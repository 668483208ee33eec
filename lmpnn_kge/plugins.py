"""Backbone plugins: discovered by metadata, loaded by name, each one contained.

A plugin is an entry point of the group `lmpnn_kge.backbones`; the entry's name is the backbone's.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

import pluggy

from lmpnn_kge import hookspecs
from lmpnn_kge.backbone import Backbone, ScoreType
from lmpnn_kge.errors import PluginError, choices, short

GROUP = "lmpnn_kge.backbones"


@dataclass(frozen=True)
class Plugin:
    """A backbone that some installed distribution claims to provide; nothing is imported yet."""

    entry: EntryPoint
    rivals: tuple[str, ...] = ()  # other distributions that claim the same name

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def distribution(self) -> str:
        dist = self.entry.dist
        return f"{dist.name} {dist.version}" if dist else "unknown"

    def load(self) -> type[Backbone]:
        """Import the plugin and return its class; PluginError says what is wrong with it."""
        if self.rivals:
            raise PluginError(
                f"backbone {self.name!r} is claimed by {self.distribution} and by "
                f"{' and '.join(self.rivals)}; uninstall all but one"
            )
        # A plugin is somebody else's code: whatever it raises must not stop the others.
        try:
            return _backbone_of(self.entry)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            reason = short(" ".join(traceback.format_exception_only(error)[-1].split()), 500)
            raise PluginError(
                f"backbone {self.name!r} of {self.distribution} is broken: {reason}"
            ) from error


def _backbone_of(entry: EntryPoint) -> type[Backbone]:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    with redirect_stdout(sys.stderr):  # what a plugin prints is not part of our output
        manager.register(entry.load(), name=entry.name)
        manager.check_pending()
        backbone = manager.hook.lmpnn_kge_backbone()
    if not (isinstance(backbone, type) and issubclass(backbone, Backbone)):
        raise TypeError(
            f"hook lmpnn_kge_backbone of {entry.value} must return a subclass of Backbone, "
            f"not {backbone!r}"
        )
    if inspect.isabstract(backbone):
        raise TypeError(f"{backbone.__name__} does not define forward")
    models, projects = backbone.libkge_models, backbone.project is not Backbone.project
    is_distance = getattr(backbone, "score_type", None) is ScoreType.DISTANCE
    for name, is_right, what in (
        ("score_type", isinstance(getattr(backbone, "score_type", None), ScoreType), "a ScoreType"),
        ("formula", isinstance(getattr(backbone, "formula", None), str), "a string"),
        ("inverse_formula", isinstance(backbone.inverse_formula, str | None), "a string or None"),
        ("libkge_models", _is_strings(models), "a tuple of strings"),
        ("project", is_distance or not projects, "left out where scores are inner products"),
    ):
        if not is_right:
            raise TypeError(f"{backbone.__name__}.{name} must be {what}")
    return backbone


def _is_strings(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)


def discover() -> list[Plugin]:
    """All installed plugins, by name; reads metadata only."""
    entries = list(entry_points(group=GROUP))
    plugins = []
    for entry in entries:
        rivals = (Plugin(other) for other in entries if other.name == entry.name)
        plugins.append(Plugin(entry, tuple(p.distribution for p in rivals if p.entry is not entry)))
    return sorted(plugins, key=lambda plugin: (plugin.name, plugin.distribution))


def load_backbone(name: str) -> type[Backbone]:
    """The class of one backbone; no other plugin is imported."""
    plugins = {plugin.name: plugin for plugin in discover()}
    if name not in plugins:
        raise PluginError(f"no backbone is called {name!r}; {choices(name, plugins)}")
    return plugins[name].load()
