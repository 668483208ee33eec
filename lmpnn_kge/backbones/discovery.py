"""Plugins: found by their metadata, imported by name, isolated from each other.

A backbone is an entry point in the group `lmpnn_kge.backbones`, a loader, which reads files, in the
group `lmpnn_kge.loaders`, and a tracker, which records trainings, in the group
`lmpnn_kge.trackers`. The name of the entry point is the plugin's name.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

from lmpnn_kge.backbones import hookspecs
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.messages import ScoreType
from lmpnn_kge.errors import CheckpointError, PluginError, choices, short
from lmpnn_kge.tracker import Tracker

if TYPE_CHECKING:
    from lmpnn_kge.backbones.checkpoint import Checkpoint

GROUP = "lmpnn_kge.backbones"
LOADERS = "lmpnn_kge.loaders"
TRACKERS = "lmpnn_kge.trackers"

#: What the plugins of a group are called, and the hook that they implement.
KINDS = {
    GROUP: ("backbone", "lmpnn_kge_backbone"),
    LOADERS: ("loader", "lmpnn_kge_load"),
    TRACKERS: ("tracker", "lmpnn_kge_tracker"),
}


@dataclass(frozen=True)
class Plugin:
    """A plugin that an installed distribution declares; nothing is imported yet."""

    entry: EntryPoint
    rivals: tuple[str, ...] = ()  # other distributions that claim the same name

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def distribution(self) -> str:
        dist = self.entry.dist
        return f"{dist.name} {dist.version}" if dist else "unknown"

    @property
    def ships(self) -> bool:
        """Whether the plugin is part of this package."""
        return self.entry.dist is not None and self.entry.dist.name == "lmpnn-kge"

    def __str__(self) -> str:
        return f"{KINDS[self.entry.group][0]} {self.name!r}"

    def load(self) -> type[Backbone]:
        """Import a backbone and return its class; PluginError if the plugin is broken."""
        with self.isolated():
            return _backbone_of(self.entry)

    def load_hook(self) -> Callable[..., Any]:
        """Import a loader or tracker and return its hook; PluginError if the plugin is broken."""
        with self.isolated():
            return _hook_of(self.entry)

    def load_tracker(self) -> type[Tracker]:
        """Import a tracker and return its class; PluginError if it is broken or lacks a package."""
        with self.isolated(PluginError):
            tracker = _hook_of(self.entry)()
            if not (isinstance(tracker, type) and issubclass(tracker, Tracker)):
                raise TypeError(
                    f"hook lmpnn_kge_tracker of {self.entry.value} must return a subclass of "
                    f"Tracker, not {short(tracker)}"
                )
            return tracker

    def read(self, file: Path) -> Checkpoint | None:
        """Read a file with a loader; None if the file is not in its format.

        CheckpointError if the file is unusable, PluginError if the loader is broken.
        """
        from lmpnn_kge.backbones.checkpoint import Checkpoint

        with self.isolated(CheckpointError):
            checkpoint = _hook_of(self.entry)(file=file)
            if not isinstance(checkpoint, Checkpoint | None):
                raise TypeError(
                    f"hook lmpnn_kge_load of {self.entry.value} must return a Checkpoint or None, "
                    f"not {short(checkpoint)}"
                )
            return checkpoint

    @contextmanager
    def isolated(self, passing: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
        """Turn everything that foreign code raises into PluginError, except for `passing`."""
        if self.rivals:
            raise PluginError(
                f"{self} is claimed by {self.distribution} and by "
                f"{' and '.join(self.rivals)}; uninstall all but one"
            )
        try:
            with redirect_stdout(sys.stderr):  # our output must not contain what a plugin prints
                yield
        except (KeyboardInterrupt, passing):
            raise
        except BaseException as error:
            reason = short(" ".join(traceback.format_exception_only(error)[-1].split()), 500)
            raise PluginError(f"{self} of {self.distribution} is broken: {reason}") from error


def _hooks_of(entry: EntryPoint) -> pluggy.HookRelay:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(entry.load(), name=entry.name)
    manager.check_pending()
    return manager.hook


def _hook_of(entry: EntryPoint) -> Callable[..., Any]:
    _, name = KINDS[entry.group]
    hook: pluggy.HookCaller = getattr(_hooks_of(entry), name)
    if not hook.get_hookimpls():
        raise TypeError(f"{entry.value} has no hook {name}")
    return hook


def _backbone_of(entry: EntryPoint) -> type[Backbone]:
    backbone = _hooks_of(entry).lmpnn_kge_backbone()
    if not (isinstance(backbone, type) and issubclass(backbone, Backbone)):
        raise TypeError(
            f"hook lmpnn_kge_backbone of {entry.value} must return a subclass of Backbone, "
            f"not {backbone!r}"
        )
    if inspect.isabstract(backbone):
        raise TypeError(f"{backbone.__name__} does not define forward")
    models, projects = backbone.libkge_models, backbone.project is not Backbone.project
    is_distance = getattr(backbone, "score_type", None) is ScoreType.DISTANCE
    for name, is_valid, expected in (
        ("score_type", isinstance(getattr(backbone, "score_type", None), ScoreType), "a ScoreType"),
        ("formula", isinstance(getattr(backbone, "formula", None), str), "a string"),
        ("inverse_formula", isinstance(backbone.inverse_formula, str | None), "a string or None"),
        ("libkge_models", _is_strings(models), "a tuple of strings"),
        ("project", is_distance or not projects, "left out if scores are inner products"),
    ):
        if not is_valid:
            raise TypeError(f"{backbone.__name__}.{name} must be {expected}")
    return backbone


def _is_strings(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)


def discover(group: str = GROUP) -> list[Plugin]:
    """List all installed plugins of a group, sorted by name; only metadata is read."""
    entries = list(entry_points(group=group))
    plugins = []
    for entry in entries:
        rivals = (Plugin(other) for other in entries if other.name == entry.name)
        plugins.append(Plugin(entry, tuple(p.distribution for p in rivals if p.entry is not entry)))
    return sorted(plugins, key=lambda plugin: (plugin.name, plugin.distribution))


def first_backbone() -> str:
    """Name of the first backbone of this package: the default if the user chooses none."""
    return next(plugin.name for plugin in discover() if plugin.ships)


def backbone_class(name: str) -> type[Backbone]:
    """Import one backbone and return its class; no other plugin is imported."""
    return _find(name, GROUP).load()


def find_tracker(name: str) -> Plugin:
    """The tracker of a name; nothing is imported."""
    return _find(name, TRACKERS)


def _find(name: str, group: str) -> Plugin:
    plugins, (kind, _) = {plugin.name: plugin for plugin in discover(group)}, KINDS[group]
    if name not in plugins:
        valid = choices(name, plugins, if_none=f"no {kind} is installed")
        raise PluginError(f"no {kind} is called {name!r}; {valid}")
    return plugins[name]


def backbone_name(backbone: type[Backbone]) -> str:
    """Find the name under which a backbone class is installed."""
    for plugin in discover():
        with suppress(PluginError):  # a broken plugin cannot provide this class
            if plugin.load() is backbone:
                return plugin.name
    raise PluginError(
        f"{backbone.__name__} is not an installed backbone, so no file can name it; "
        "give its plugin an entry point and install it"
    )
