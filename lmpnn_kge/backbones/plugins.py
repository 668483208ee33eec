"""Plugins: discovered by metadata, loaded by name, each one contained.

A backbone is an entry point of the group `lmpnn_kge.backbones`, and a loader, which reads files,
one of `lmpnn_kge.loaders`; the entry's name is the plugin's.
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
from lmpnn_kge.backbones.contract import Backbone, ScoreType
from lmpnn_kge.errors import CheckpointError, PluginError, choices, short

if TYPE_CHECKING:
    from lmpnn_kge.backbones.checkpoint import Checkpoint

GROUP = "lmpnn_kge.backbones"
LOADERS = "lmpnn_kge.loaders"


@dataclass(frozen=True)
class Plugin:
    """What some installed distribution claims to provide; nothing is imported yet."""

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
        """Whether it comes with this package."""
        return self.entry.dist is not None and self.entry.dist.name == "lmpnn-kge"

    def __str__(self) -> str:
        return f"{'loader' if self.entry.group == LOADERS else 'backbone'} {self.name!r}"

    def load(self) -> type[Backbone]:
        """Import a backbone and return its class; PluginError says what is wrong with it."""
        with self._contained():
            return _backbone_of(self.entry)

    def load_reader(self) -> Callable[..., Any]:
        """Import a loader and return its hook; PluginError says what is wrong with it."""
        with self._contained():
            return _reader_of(self.entry)

    def read(self, file: Path) -> Checkpoint | None:
        """What a loader finds in a file; None if that is not its own.

        CheckpointError says what is wrong with the file, PluginError what is with the loader.
        """
        from lmpnn_kge.backbones.checkpoint import Checkpoint

        with self._contained(CheckpointError):
            found = _reader_of(self.entry)(file=file)
            if not isinstance(found, Checkpoint | None):
                raise TypeError(
                    f"hook lmpnn_kge_load of {self.entry.value} must return a Checkpoint or None, "
                    f"not {short(found)}"
                )
            return found

    @contextmanager
    def _contained(self, passing: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
        """A plugin is somebody else's code: whatever it raises must not stop the others."""
        if self.rivals:
            raise PluginError(
                f"{self} is claimed by {self.distribution} and by "
                f"{' and '.join(self.rivals)}; uninstall all but one"
            )
        try:
            with redirect_stdout(sys.stderr):  # what a plugin prints is not part of our output
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


def _reader_of(entry: EntryPoint) -> Callable[..., Any]:
    hook = _hooks_of(entry).lmpnn_kge_load
    if not hook.get_hookimpls():
        raise TypeError(f"{entry.value} has no hook lmpnn_kge_load")
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


def discover(group: str = GROUP) -> list[Plugin]:
    """All installed plugins of a group, by name; reads metadata only."""
    entries = list(entry_points(group=group))
    plugins = []
    for entry in entries:
        rivals = (Plugin(other) for other in entries if other.name == entry.name)
        plugins.append(Plugin(entry, tuple(p.distribution for p in rivals if p.entry is not entry)))
    return sorted(plugins, key=lambda plugin: (plugin.name, plugin.distribution))


def first_backbone() -> str:
    """The name of the first that ships, where somebody has not chosen one."""
    return next(plugin.name for plugin in discover() if plugin.ships)


def load_backbone(name: str) -> type[Backbone]:
    """The class of one backbone; no other plugin is imported."""
    plugins = {plugin.name: plugin for plugin in discover()}
    if name not in plugins:
        raise PluginError(f"no backbone is called {name!r}; {choices(name, plugins)}")
    return plugins[name].load()


def backbone_name(kind: type[Backbone]) -> str:
    """The name under which the class of a backbone is installed."""
    for plugin in discover():
        with suppress(PluginError):  # one that is broken cannot be this one
            if plugin.load() is kind:
                return plugin.name
    raise PluginError(
        f"{kind.__name__} is not an installed backbone, so no file can name it; "
        "give its plugin an entry point and install it"
    )
