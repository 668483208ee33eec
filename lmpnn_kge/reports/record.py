"""What a run has to tell: its settings, epochs and results, read from its folder and checked.

Nothing here needs torch, so that reports can be made where runs are not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from lmpnn_kge.errors import RunError, short
from lmpnn_kge.settings import Config
from lmpnn_kge.training.folder import RunFolder


@dataclass(frozen=True)
class TypeResult:
    """The metrics of one query type, as fractions."""

    mrr: float
    hits: Mapping[int, float]
    by_missing: Mapping[int, tuple[float, int]]  # edges missing -> MRR, hard answers


@dataclass(frozen=True)
class Results:
    """The metrics of a split."""

    types: Mapping[str, TypeResult]
    positive: float | None  # A_P
    negative: float | None  # A_N

    @property
    def mean(self) -> float:
        """Over all types: what training maximises."""
        return sum(found.mrr for found in self.types.values()) / len(self.types)


@dataclass(frozen=True)
class Epoch:
    number: int
    loss: float
    speed: float | None  # queries a second
    valid: Results | None


@dataclass(frozen=True)
class RunRecord:
    """A run, finished or not."""

    path: Path
    settings: Mapping[str, Any]
    facts: Mapping[str, Any]
    epochs: tuple[Epoch, ...]
    test: Results | None

    @property
    def graph(self) -> str:
        return str(self.facts["queries"].get("graph", "an unnamed graph"))

    @property
    def imported(self) -> str | None:
        """The folder that its queries come from; None where they were sampled."""
        provenance = self.facts["queries"].get("provenance")
        found = provenance.get("imported") if isinstance(provenance, dict) else None
        return None if found is None else str(found)

    @property
    def model(self) -> str:
        """What its checkpoint is."""
        return str(self.facts["checkpoint"].get("model") or self.facts["backbone"])

    @property
    def best(self) -> Epoch | None:
        """The epoch whose network was kept: the first that was best on valid."""
        validated = [epoch for epoch in self.epochs if epoch.valid is not None]
        return max(
            validated, key=lambda epoch: epoch.valid.mean if epoch.valid else 0, default=None
        )

    @property
    def speed(self) -> float | None:
        speeds = [epoch.speed for epoch in self.epochs if epoch.speed is not None]
        return median(speeds) if speeds else None

    @property
    def state(self) -> str | None:
        """Why there is no result; None where there is."""
        if self.test is not None:
            return None
        done, wanted = len(self.epochs), self.settings["epochs"]
        stale = sum(1 for e in self.epochs if e.valid and self.best and e.number > self.best.number)
        if done < wanted and not 0 < self.settings["patience"] <= stale:
            return f"not finished: {done} of {wanted} epochs"
        return "no results on test"


def read_run(folder: str | Path) -> RunRecord:
    """A run from its folder; RunError where it is none or is damaged."""
    run = RunFolder.open(folder, Config)
    file = run.path / "test.json"
    test = read_results(run.read_json("test.json"), str(file)) if file.exists() else None
    return RunRecord(run.path, asdict(run.config), run.facts, _read_epochs(run.path), test)


def read_results(content: Mapping[str, Any], where: str = "results") -> Results:
    """Metrics as `evaluate --json` prints them; RunError where they are none."""
    try:
        types = {
            str(name): TypeResult(
                _fraction(found["mrr"]),
                {
                    int(key.removeprefix("hits@")): _fraction(value)
                    for key, value in found.items()
                    if key.startswith("hits@")
                },
                {
                    int(edges): (_fraction(part["mrr"]), int(part["answers"]))
                    for edges, part in found["missing_edges"].items()
                },
            )
            for name, found in content["types"].items()
        }
        averages = (content["A_P"], content["A_N"])
        positive, negative = (None if a is None else _fraction(a) for a in averages)
        if not types:
            raise ValueError("no types")
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise RunError(f"{where} is damaged: it holds no metrics ({short(str(error))})") from error
    return Results(types, positive, negative)


def _read_epochs(folder: Path) -> tuple[Epoch, ...]:
    file = folder / "metrics.jsonl"
    if not file.exists():  # a run that has just begun
        return ()
    try:
        records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return tuple(_read_epoch(record, file) for record in records)
    except (OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RunError(f"{file} is damaged: {short(str(error))}") from error


def _read_epoch(record: Any, file: Path) -> Epoch:
    speed, valid = record["queries_per_second"], record.get("valid")
    return Epoch(
        int(record["epoch"]),
        _number(record["loss"]),
        None if speed is None else _number(speed),
        None if valid is None else read_results(valid, str(file)),
    )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{short(value)} is no number")
    return float(value)


def _fraction(value: Any) -> float:
    found = _number(value)
    if not 0 <= found <= 1:
        raise ValueError(f"{found} is not between 0 and 1")
    return found
