"""The settings of each command and method, with their types and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from lmpnn_kge.errors import ConfigError, short

#: The largest whole number that a setting may have: what every random generator accepts.
MOST = 2**31 - 1

#: The largest other number: single precision can still multiply it with a score.
LARGEST = 1e30

#: How a disjunction is answered: dnf scores each part and keeps the best, merge reads OR as AND.
UnionMode = Literal["dnf", "merge"]

#: Whether an edge of the training graph is true, or only as true as its score says.
FactsMode = Literal["known", "ignored"]

#: Whether a constant is updated like any other node, as in the paper, or keeps its embedding.
ConstantsMode = Literal["updated", "kept"]


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
            if isinstance(value, float) and abs(value) > LARGEST:
                raise ConfigError(f"{key} is {value}, but must be at most {LARGEST:g}")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(Settings):
    """The settings that the training loop reads, whatever it trains.

    Each kind of training declares these fields itself, because their order names run folders.
    """

    least: ClassVar = {
        "epochs": 0,
        "batch_size": 1,
        "parts": 1,
        "validate_every": 0,
        "patience": 0,
        "save_minutes": 0,
        "seed": 0,
    }
    above: ClassVar = {"learning_rate": 0}

    if TYPE_CHECKING:
        epochs: int
        batch_size: int
        parts: int
        learning_rate: float
        validate_every: int
        patience: int
        save_minutes: float
        seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parts > self.batch_size:
            raise ConfigError(
                f"parts is {self.parts}, but must be at most batch_size, {self.batch_size}"
            )


@dataclass(frozen=True, kw_only=True)
class TrainSettings(TrainingSettings):
    """The settings of `train`: what decides a result, besides checkpoint and queries."""

    folder = ""
    least: ClassVar = {
        **TrainingSettings.least,
        "hidden": 1,
        "hidden_layers": 1,
        "attention": 0,
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
    attention: int = 0  # runs of older versions do not have it
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
    parts: int = 1  # runs of older versions do not have it


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
    parts: int = 1  # runs of older versions do not have it


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


@dataclass(frozen=True, kw_only=True)
class SearchSettings(Settings):
    """The settings of search and hybrid, which answer queries by the truth of edges."""

    folder = "search"
    least: ClassVar = {"beam": 1, "guesses": 1, "tries": 1, "seed": 0}
    above: ClassVar = {"beta": 0}

    # Truth
    facts: FactsMode
    t_norm: Literal["product", "godel"]
    exists: Literal["noisy-or", "max"]
    # Search
    beam: int
    guesses: int
    tries: int
    # Fitting
    beta: float | None  # None: fitted
    bias: float | None  # None: fitted
    seed: int


#: By the command or the method that has them.
KINDS: dict[str, type[Settings]] = {
    "train": TrainSettings,
    "pretrain": PretrainSettings,
    "cqd": CqdSettings,
    "search": SearchSettings,
}
