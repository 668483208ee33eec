"""Configurations as YAML files: those that ship with the package, and a user's own."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import ConfigError, choices, one_line, short
from lmpnn_kge.files import read_text
from lmpnn_kge.settings.kinds import Settings, TrainSettings
from lmpnn_kge.settings.values import S, make_settings, yaml_value
from lmpnn_kge.settings.yaml_text import NO_YAML, read_yaml

#: The folder of the shipped configurations: in an installed package, and in a checkout.
FOLDERS = (Path(__file__).parents[1] / "configs", Path(__file__).parents[2] / "configs")

DEFAULT = "default"


def load_config(
    name: str | Path = DEFAULT, settings: Mapping[str, Any] | None = None
) -> TrainSettings:
    """The default settings of `train`, changed by a configuration, then by single settings."""
    return load_settings(TrainSettings, [DEFAULT, name], settings)


def load_settings(
    kind: type[S], names: Iterable[str | Path], settings: Mapping[str, Any] | None = None
) -> S:
    """Settings from files or shipped configurations, later ones over earlier, then single ones."""
    values: dict[str, Any] = {}
    for name in names:
        values |= read_mapping(find_file(kind.folder, name, "configuration"))
    return make_settings(kind, {**values, **(settings or {})})


def files_for_score(is_distance: bool, config: str | Path | None = None) -> list[str | Path]:
    """The default configurations for a type of score, and a user's choice over them.

    Only pretraining has other defaults for models that score by distances.
    """
    own = [] if config in (None, DEFAULT) else [config]
    return [DEFAULT, *(["distance"] if is_distance else []), *own]


def explain(kind: type[Settings], names: Iterable[str | Path], settings: Mapping[str, Any]) -> str:
    """All settings as YAML, each under the reason that the file it comes from gives for it."""
    names = list(names)
    values = vars(load_settings(kind, names, settings))
    reasons: dict[str, str] = {}
    for name in names:
        file = find_file(kind.folder, name, "configuration")
        given = dict.fromkeys(read_mapping(file), f"set in {file.name}")
        reasons |= {**given, **_reasons(file)}
    reasons |= {k: f"{reasons.get(k, '')} (set on the command line)".strip() for k in settings}
    blocks = []
    for key in {**dict.fromkeys(key for key in reasons if key in values), **values}:
        comment = textwrap.wrap(reasons.get(key, ""), 78)
        blocks += [*(f"# {line}" for line in comment), f"{key}: {yaml_value(values[key])}"]
    return "\n".join(blocks) + "\n"


def _reasons(file: Path) -> dict[str, str]:
    """The comments behind the values of a YAML file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    matches = (re.fullmatch(r"(\w+):.*?\s#\s*(.*)", line) for line in lines)
    return {match[1]: match[2] for match in matches if match}


def shipped(kind: type[Settings] = TrainSettings) -> dict[str, Path]:
    """The configurations of a kind that come with the package, by name."""
    return shipped_files(kind.folder)


def shipped_files(folder: str) -> dict[str, Path]:
    """The files of a folder in configs/, by name."""
    place = next(place for place in FOLDERS if place.is_dir()) / folder
    return {file.stem: file for file in sorted(place.glob("*.yaml"))}


def find_file(folder: str, name: str | Path, what: str) -> Path:
    """A shipped file by its name, or a user's own by its path."""
    known = shipped_files(folder)
    if str(name) in known:
        return known[str(name)]
    if Path(name).suffix in (".yaml", ".yml"):
        return Path(name)
    raise ConfigError(
        f"no {what} is called {short(str(name))!r}; {choices(str(name), known)}, "
        "or a file that ends in .yaml"
    )


def read_mapping(file: Path) -> dict[Any, Any]:
    """The content of a YAML file of `key: value` lines."""
    try:
        content = read_yaml(read_text(file))
    except (OSError, *NO_YAML) as error:
        raise ConfigError(f"{file} cannot be read: {one_line(error)}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{file} must hold lines of the form `key: value`")
    return content
