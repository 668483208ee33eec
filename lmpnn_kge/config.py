"""Settings of a run: every one named, typed and checked, from YAML files and `--set key=value`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml

from lmpnn_kge.errors import ConfigError, choices, nearest, short

#: Where the shipped configurations are: in an installed package, and in a checkout.
FOLDERS = (Path(__file__).parent / "configs", Path(__file__).parents[1] / "configs")

DEFAULT = "default"

#: The largest whole number of a setting: what every generator takes as a seed.
MOST = 2**31 - 1

#: What the YAML library raises for text that is no YAML, or stands for no value.
NO_YAML = (yaml.YAMLError, ValueError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class Config:
    """What decides the result of a run, besides its checkpoint and its queries."""

    # The network
    hidden: int
    hidden_layers: int
    epsilon: float
    depth_shift: int
    messages: Literal["inference", "cat"]
    union: Literal["dnf", "merge"]
    # The loss
    temperature: float
    negatives: Literal["independent", "shared", "all"]
    negative_count: int
    # The optimiser
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    schedule: Literal["constant", "linear", "cosine"]
    warmup: int
    # Validation
    validate_every: int
    validation_queries: int
    patience: int
    # The machine
    precision: Literal["auto", "bf16", "fp32"]
    compile: bool
    save_minutes: float
    seed: int

    def __post_init__(self) -> None:
        for key, least in _LEAST.items():
            if getattr(self, key) < least:
                raise ConfigError(f"{key} is {getattr(self, key)}, but must be at least {least}")
        for key, value in dataclasses.asdict(self).items():
            if isinstance(value, int) and abs(value) > MOST:
                raise ConfigError(f"{key} is {short(value)}, but must be at most {MOST}")
        for key in ("temperature", "learning_rate"):
            if getattr(self, key) <= 0:
                raise ConfigError(f"{key} is {getattr(self, key)}, but must be above 0")


_LEAST = {
    "hidden": 1,
    "hidden_layers": 1,
    "negative_count": 1,
    "epochs": 0,
    "batch_size": 1,
    "weight_decay": 0,
    "warmup": 0,
    "validate_every": 0,
    "validation_queries": 1,
    "patience": 0,
    "save_minutes": 0,
    "seed": 0,
}


def load_config(name: str | Path = DEFAULT, settings: Mapping[str, Any] | None = None) -> Config:
    """The default settings, changed by a file or a shipped configuration, then by single ones."""
    values = _read(_find(DEFAULT))
    if str(name) != DEFAULT:
        values |= _read(_find(name))
    return make_config({**values, **(settings or {})})


def make_config(values: Mapping[str, Any]) -> Config:
    """A configuration of all its settings, each of its type."""
    kinds = get_type_hints(Config)
    for key in values:
        if key not in kinds:
            raise ConfigError(f"there is no setting {short(key)!r}{nearest(str(key), kinds)}")
    missing = [key for key in kinds if key not in values]
    if missing:
        raise ConfigError(f"settings are missing: {', '.join(missing)}")
    return Config(**{key: _typed(key, value, kinds[key]) for key, value in values.items()})


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """`key=value` as a user types it."""
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{short(text)!r} is no setting: write key=value")
        try:
            settings[key.strip()] = yaml.safe_load(value)
        except NO_YAML as error:
            raise ConfigError(f"{short(text)!r} has a value that is no YAML") from error
    return settings


def to_yaml(config: Config) -> str:
    """The settings as a file that `load_config` reads."""
    return yaml.safe_dump(dataclasses.asdict(config), sort_keys=False)


def shipped() -> dict[str, Path]:
    """The configurations that come with the package, by name."""
    folder = next(folder for folder in FOLDERS if folder.is_dir())
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def _find(name: str | Path) -> Path:
    known = shipped()
    if str(name) in known:
        return known[str(name)]
    if Path(name).suffix in (".yaml", ".yml"):
        return Path(name)
    raise ConfigError(
        f"no configuration is called {str(name)!r}; {choices(str(name), known)}, "
        "or a file that ends in .yaml"
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, *NO_YAML) as error:
        raise ConfigError(f"{file} cannot be read: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{file} must hold lines of the form `key: value`")
    return content


def _typed(key: str, value: Any, kind: Any) -> Any:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ConfigError(f"{key} is {short(value)!r}; {choices(str(value), get_args(kind))}")
        return value
    if kind is float and isinstance(value, int | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            value = float(value)  # YAML reads 1e-4 as text
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        wanted = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
        raise ConfigError(f"{key} is {short(value)!r}, but must be {wanted}")
    if kind is float and not math.isfinite(value):
        raise ConfigError(f"{key} is {value}, but must be a finite number")
    return value
