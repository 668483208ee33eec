"""The record of a run, read from its folder and checked: settings, epochs and results.

Nothing here needs torch, so that reports can be made on machines that do not train.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from lmpnn_kge.errors import RunError, one_line
from lmpnn_kge.methods.calibration import Reliability
from lmpnn_kge.methods.names import LMPNN
from lmpnn_kge.methods.results import Results
from lmpnn_kge.methods.type_result import number
from lmpnn_kge.runs.kept import edge_reliability, method_results, read_results
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.training.folder import METRICS, RUN, RunFolder
from lmpnn_kge.training.provenance import RunProvenance


@dataclass(frozen=True)
class Epoch:
    """A line of metrics.jsonl."""

    number: int
    loss: float
    speed: float | None  # queries per second
    valid: Results | None


@dataclass(frozen=True)
class RunRecord:
    """A run, finished or not."""

    path: Path
    settings: TrainSettings
    provenance: RunProvenance
    epochs: tuple[Epoch, ...]
    test: Results | None
    methods: Mapping[str, Results] = field(default_factory=dict)  # on test, by name
    edges: Mapping[str, Reliability] = field(default_factory=dict)  # of edge probabilities

    @property
    def graph(self) -> str:
        return self.provenance.queries.graph

    @property
    def imported(self) -> str | None:
        """The folder that its queries come from; None if they were sampled."""
        return self.provenance.queries.imported

    @property
    def model(self) -> str:
        """The embedding model of its checkpoint."""
        return self.provenance.checkpoint.model

    @property
    def valid(self) -> dict[int, float]:
        """The mean MRR on valid, by the number of the epoch."""
        return {epoch.number: epoch.valid.mean for epoch in self.epochs if epoch.valid is not None}

    @property
    def best(self) -> int | None:
        """The epoch whose network was kept: the first of those with the best mean MRR on valid."""
        valid = self.valid
        return max(valid, key=lambda epoch: valid[epoch], default=None)

    @property
    def speed(self) -> float | None:
        """The median over the epochs, in queries per second."""
        speeds = [epoch.speed for epoch in self.epochs if epoch.speed is not None]
        return median(speeds) if speeds else None

    @property
    def state(self) -> str | None:
        """The reason why there are no results on test; None if there are."""
        if self.test is not None:
            return None
        done, wanted, best = len(self.epochs), self.settings.epochs, self.best
        # Training also ends after this many validations that did not improve on the best.
        stale = sum(best is not None and epoch > best for epoch in self.valid)
        if done < wanted and not 0 < self.settings.patience <= stale:
            return f"not finished: {done} of {wanted} epochs"
        return "no results on test"


def read_run(folder: str | Path) -> RunRecord:
    """Read a run from its folder; RunError if it is not a run folder or is damaged."""
    run = RunFolder.open(folder, RUN)
    return RunRecord(
        run.path,
        run.settings,
        run.provenance,
        _read_epochs(run),
        read_results(run, LMPNN),
        method_results(run),
        edge_reliability(run),
    )


def _read_epochs(run: RunFolder[TrainSettings, RunProvenance]) -> tuple[Epoch, ...]:
    file = run.path / METRICS
    try:
        return tuple(_read_epoch(record, str(file)) for record in run.read_epochs())
    except (OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RunError(f"{file} is damaged: {one_line(error)}") from error


def _read_epoch(record: Mapping[str, object], source: str) -> Epoch:
    speed, valid = record["queries_per_second"], record.get("valid")
    return Epoch(
        int(number(record["epoch"])),
        number(record["loss"]),
        None if speed is None else number(speed),
        None if valid is None else Results.from_json(valid, source),
    )
