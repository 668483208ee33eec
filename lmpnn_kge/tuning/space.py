"""The settings to search for, each with a range or with choices.

    learning_rate=1e-4..1e-2,log    a number between two ends, here with an even logarithm
    hidden=64..512                  a whole number, because the setting is one
    negatives=shared|all            one of some values

A YAML file has the same as lines `name: 1e-4..1e-2,log` or `name: [shared, all]`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmpnn_kge.errors import ConfigError, short
from lmpnn_kge.settings.files import read_mapping
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.settings.values import make_settings, parse_settings

if TYPE_CHECKING:
    from optuna.trial import Trial

#: Settings that do not belong to a network, or that decide how long one may be trained.
FIXED = ("seed", "epochs", "validate_every", "validation_queries", "save_minutes", "patience")

_RANGE = re.compile(r"\s*(\S+?)\s*\.\.\s*([^\s,]+)\s*(,\s*log\s*)?")


@dataclass(frozen=True)
class Range:
    """All numbers between two ends."""

    low: float
    high: float
    log: bool = False

    def draw(self, name: str, trial: Trial) -> Any:
        if isinstance(self.low, int):
            return trial.suggest_int(name, self.low, int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)

    def __str__(self) -> str:
        return f"{self.low}..{self.high}{',log' * self.log}"


@dataclass(frozen=True)
class Choices:
    """Some values."""

    values: tuple[Any, ...]

    def draw(self, name: str, trial: Trial) -> Any:
        return trial.suggest_categorical(name, self.values)

    def __str__(self) -> str:
        return "|".join(map(str, self.values))


Space = Mapping[str, Range | Choices]


def make_space(
    base: TrainSettings, texts: Iterable[str] = (), file: str | Path | None = None
) -> dict[str, Range | Choices]:
    """The space of a file and of `name=space` texts; ConfigError if a setting cannot be so."""
    given: dict[str, Any] = {} if file is None else read_mapping(Path(file))
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value.strip():
            raise ConfigError(
                f"{short(text)!r} is not a search: write NAME=LOW..HIGH, NAME=LOW..HIGH,log or "
                "NAME=A|B|C"
            )
        given[name.strip()] = value
    if not given:
        raise ConfigError("nothing to search for: give a setting, such as temperature=0.05..1,log")
    return {name: _one(base, str(name), value) for name, value in given.items()}


def _one(base: TrainSettings, name: str, value: Any) -> Range | Choices:
    if name in FIXED:
        raise ConfigError(f"{name} cannot be searched for: it is the same for all trials")
    if isinstance(value, str) and (match := _RANGE.fullmatch(value)):
        low, high = _typed(base, name, [_yaml(match[1]), _yaml(match[2])])
        if any(isinstance(end, bool | str) for end in (low, high)):
            raise ConfigError(f"{name} is not a number; write its values as {name}=A|B|C")
        if not low < high or (match[3] and low <= 0):
            raise ConfigError(
                f"the range {short(value)} of {name} is empty, or has no logarithm: write "
                "LOW..HIGH, and for log a LOW above 0"
            )
        return Range(low, high, bool(match[3]))
    values = [_yaml(part) for part in value.split("|")] if isinstance(value, str) else value
    if not isinstance(values, list):
        raise ConfigError(f"{name} has {short(value)} in place of a range or a list of values")
    return Choices(tuple(dict.fromkeys(_typed(base, name, values))))


def _yaml(text: str) -> Any:
    return parse_settings([f"value={text}"])["value"]


def _typed(base: TrainSettings, name: str, values: Sequence[Any]) -> list[Any]:
    """Values as the setting has them; ConfigError if it cannot have one."""
    return [getattr(make_settings(type(base), {**vars(base), name: v}), name) for v in values]


def shown(value: Any) -> str:
    """A value of a trial as a cell of a table."""
    if isinstance(value, float) and value and math.isfinite(value):
        return f"{value:.3g}"
    return str(value)
