"""Settings: every one named, typed and checked, from YAML files and `--set key=value`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import yaml

from lmpnn_kge.errors import ConfigError, choices, one_line, short

#: The folder of the shipped configurations: in an installed package, and in a checkout.
FOLDERS = (Path(__file__).parent / "configs", Path(__file__).parents[1] / "configs")

DEFAULT = "default"

#: The largest whole number that a setting may have: what every random generator accepts.
MOST = 2**31 - 1

#: How a disjunction is answered: dnf scores each part and keeps the best, merge reads OR as AND.
UnionMode = Literal["dnf", "merge"]

#: Whether a constant is updated like any other node, as in the paper, or keeps its embedding.
ConstantsMode = Literal["updated", "kept"]

#: What the YAML library raises for text that is not YAML.
NO_YAML = (yaml.YAMLError, ValueError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Named values, each of its type and within its bounds."""

    folder: ClassVar[str]  # in configs/, with the files of these settings
    least: ClassVar[dict[str, float]] = {}
    above: ClassVar[dict[str, float]] = {}
    below: ClassVar[dict[str, float]] = {}

    def __post_init__(self) -> None:
        for key, value in vars(self).items():
            if value is None:
                continue
            if key in self.least and value < self.least[key]:
                raise ConfigError(f"{key} is {value}, but must be at least {self.least[key]}")
            if key in self.above and value <= self.above[key]:
                raise ConfigError(f"{key} is {value}, but must be above {self.above[key]}")
            if key in self.below and value >= self.below[key]:
                raise ConfigError(f"{key} is {value}, but must be below {self.below[key]}")
            if isinstance(value, int) and abs(value) > MOST:
                raise ConfigError(f"{key} is {short(value)}, but must be at most {MOST}")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(Settings):
    """The settings that the training loop reads, whatever it trains.

    Each kind of training declares these fields itself, because their order names run folders.
    """

    least: ClassVar = {
        "epochs": 0,
        "batch_size": 1,
        "validate_every": 0,
        "patience": 0,
        "save_minutes": 0,
        "seed": 0,
    }
    above: ClassVar = {"learning_rate": 0}

    if TYPE_CHECKING:
        epochs: int
        learning_rate: float
        validate_every: int
        patience: int
        save_minutes: float
        seed: int


@dataclass(frozen=True, kw_only=True)
class TrainSettings(TrainingSettings):
    """The settings of `train`: what decides a result, besides checkpoint and queries."""

    folder = ""
    least: ClassVar = {
        **TrainingSettings.least,
        "hidden": 1,
        "hidden_layers": 1,
        "negative_count": 1,
        "weight_decay": 0,
        "warmup": 0,
        "validation_queries": 1,
    }
    above: ClassVar = {**TrainingSettings.above, "temperature": 0}

    # The network
    hidden: int
    hidden_layers: int
    epsilon: float
    depth_shift: int
    constants: ConstantsMode
    messages: Literal["inference", "cat"]
    negation: Literal["full", "learnt"]
    residual: bool
    union: UnionMode
    # The loss
    temperature: float
    positives: Literal["one", "all"]
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


@dataclass(frozen=True, kw_only=True)
class PretrainSettings(TrainingSettings):
    """The settings of `pretrain`, which trains an embedding."""

    folder = "pretrain"
    least: ClassVar = {
        **TrainingSettings.least,
        "dim": 1,
        "penalty": 0,
        "entity_dropout": 0,
        "relation_dropout": 0,
        "label_smoothing": 0,
        "negatives": 0,
        "validate_every": 1,
        "validation_triples": 1,
    }
    above: ClassVar = {**TrainingSettings.above, "init": 0, "network_share": 0}
    below: ClassVar = {"entity_dropout": 1, "relation_dropout": 1, "label_smoothing": 1}

    # The model
    dim: int
    init: float
    # The loss
    loss: Literal["1vsall", "kvsall"]
    negatives: int
    label_smoothing: float
    entity_dropout: float
    relation_dropout: float
    norm: Literal["n3", "l2"]
    penalty: float | None  # None: chosen on valid
    # The optimiser
    epochs: int
    batch_size: int
    learning_rate: float
    network_share: float
    # Validation
    validate_every: int
    validation_triples: int
    patience: int
    # The machine
    save_minutes: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class CqdSettings(Settings):
    """The settings of CQD, which answers queries by fuzzy logic on an embedding's scores."""

    folder = "cqd"
    least: ClassVar = {"steps": 0, "penalty": 0, "beam": 1, "seed": 0}
    above: ClassVar = {"scale": 0, "learning_rate": 0}

    # Truth
    t_norm: Literal["product", "godel"]
    scale: float
    margin: float | None  # None: measured
    # Optimisation
    steps: int
    learning_rate: float
    penalty: float
    seed: int
    # Search
    beam: int


#: By the command or the method that has them.
KINDS: dict[str, type[Settings]] = {
    "train": TrainSettings,
    "pretrain": PretrainSettings,
    "cqd": CqdSettings,
}

S = TypeVar("S", bound=Settings)


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


def make_settings(kind: type[S], values: Mapping[str, Any]) -> S:
    """All settings of a kind, each of its type."""
    kinds = {field.name: get_type_hints(kind)[field.name] for field in dataclasses.fields(kind)}
    for key in values:
        if key not in kinds:
            raise ConfigError(f"there is no setting {short(key)!r}; {choices(str(key), kinds)}")
    missing = [key for key in kinds if key not in values]
    if missing:
        raise ConfigError(f"settings are missing: {', '.join(missing)}")
    return kind(**{key: _typed(key, value, kinds[key]) for key, value in values.items()})


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """`key=value` as a user types it."""
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{short(text)!r} is not a setting: write key=value")
        try:
            settings[key.strip()] = yaml.safe_load(value)
        except NO_YAML as error:
            raise ConfigError(f"the value of {short(text)!r} is not YAML") from error
    return settings


def to_yaml(config: Settings) -> str:
    """The settings as a file that `load_config` reads."""
    return yaml.safe_dump(dict(vars(config)), sort_keys=False)


def explain(kind: type[Settings], names: Iterable[str | Path], settings: Mapping[str, Any]) -> str:
    """All settings as YAML, each under the reason that the file it comes from gives for it."""
    names = list(names)
    values = vars(load_settings(kind, names, settings))
    reasons: dict[str, str] = {}
    for name in names:
        reasons |= _reasons(find_file(kind.folder, name, "configuration"))
    reasons |= dict.fromkeys(settings, "set on the command line")
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


def yaml_value(value: Any) -> str:
    """One value as YAML writes it."""
    return yaml.safe_dump(value, default_flow_style=True).split("\n")[0]


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
        f"no {what} is called {str(name)!r}; {choices(str(name), known)}, "
        "or a file that ends in .yaml"
    )


def read_mapping(file: Path) -> dict[Any, Any]:
    """The content of a YAML file of `key: value` lines."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, *NO_YAML) as error:
        raise ConfigError(f"{file} cannot be read: {one_line(error)}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{file} must hold lines of the form `key: value`")
    return content


def _typed(key: str, value: Any, kind: Any) -> Any:
    """A value as a setting of this type; ConfigError if it cannot be one."""
    if type(None) in get_args(kind):  # `float | None`
        if value is None:
            return None
        (kind,) = set(get_args(kind)) - {type(None)}
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
