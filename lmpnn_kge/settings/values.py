"""Values of settings: checked against their types, from YAML and as YAML."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import yaml

from lmpnn_kge.errors import ConfigError, choices, one_line, short
from lmpnn_kge.settings.kinds import Settings
from lmpnn_kge.settings.yaml_text import NO_YAML, read_yaml

S = TypeVar("S", bound=Settings)


def make_settings(kind: type[S], values: Mapping[str, Any]) -> S:
    """All settings of a kind, each of its type."""
    fields, hints = dataclasses.fields(kind), get_type_hints(kind)
    kinds = {field.name: hints[field.name] for field in fields}
    for key in values:
        if key not in kinds:
            raise ConfigError(f"there is no setting {short(key)!r}; {choices(short(key), kinds)}")
    required = [field.name for field in fields if field.default is dataclasses.MISSING]
    missing = [key for key in required if key not in values]
    if missing:
        raise ConfigError(f"settings are missing: {', '.join(missing)}")
    return kind(**{key: _typed(key, value, kinds[key]) for key, value in values.items()})


def _typed(key: str, value: Any, kind: Any) -> Any:
    """A value as a setting of this type; ConfigError if it cannot be one."""
    if type(None) in get_args(kind):  # `float | None`
        if value is None:
            return None
        (kind,) = set(get_args(kind)) - {type(None)}
    if get_origin(kind) is Literal:
        if not isinstance(value, str) or value not in get_args(kind):
            raise ConfigError(f"{key} is {short(value)!r}; {choices(short(value), get_args(kind))}")
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


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """`key=value` as a user types it."""
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{short(text)!r} is not a setting: write key=value")
        try:
            settings[key.strip()] = read_yaml(value)
        except NO_YAML as error:
            raise ConfigError(
                f"the value of {short(text)!r} is not YAML: {one_line(error)}"
            ) from error
    return settings


def to_yaml(config: Settings) -> str:
    """The settings as a file that `load_config` reads."""
    return yaml.safe_dump(dict(vars(config)), sort_keys=False)


def yaml_value(value: Any) -> str:
    """One value as YAML writes it."""
    return yaml.safe_dump(value, default_flow_style=True).split("\n")[0]
