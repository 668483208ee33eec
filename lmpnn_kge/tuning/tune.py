"""Search for settings with Optuna: trials are trained and compared on valid, the best is tested.

The folder of a tuning has tune.json, which says what is searched for, study.db with all trials, a
run folder for every network that was trained, and at the end best.yaml, trials.svg and result.json.
After a kill the same command continues: the trial that was running is resumed in its run folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmpnn_kge.device import choose_device
from lmpnn_kge.errors import FileError, LmpnnError, RunError, one_line
from lmpnn_kge.files import check_regular, check_target, replace_file
from lmpnn_kge.files.leftovers import lock, remove_leftovers_in
from lmpnn_kge.methods.results import Results
from lmpnn_kge.reports.plots import plot_trials
from lmpnn_kge.reports.record import read_run
from lmpnn_kge.runs.inputs import Inputs, gather
from lmpnn_kge.runs.kept import read_json, write_json
from lmpnn_kge.runs.train import train_on
from lmpnn_kge.settings.files import DEFAULT, load_config
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.settings.values import make_settings, to_yaml
from lmpnn_kge.training.folder import METRICS, RUN, is_run
from lmpnn_kge.tuning.space import Space, make_space
from lmpnn_kge.tuning.trials import Pruned, TrialListener
from lmpnn_kge.work.listener import SILENT, Listener

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

KIND, FORMAT = "lmpnn-kge tuning", 1

#: The files of a tuning.
MARK, STUDY, BEST, PLOT, RESULT = "tune.json", "study.db", "best.yaml", "trials.svg", "result.json"


@dataclass(frozen=True)
class Trial:
    """One choice of settings and its mean MRR on valid; pruned if it was stopped early."""

    settings: Mapping[str, Any]
    valid: float
    pruned: bool = False


@dataclass(frozen=True)
class Tuned:
    """A finished tuning: the trials, the settings to begin with, and the best with its test."""

    folder: Path
    default: Trial
    trials: tuple[Trial, ...]
    best: Trial
    results: Results | None  # on test
    run: Path  # the folder of the best network

    @property
    def config(self) -> Path:
        """The settings of the best trial, for `train --config`."""
        return self.folder / BEST

    @property
    def plot(self) -> Path:
        return self.folder / PLOT


def tune(
    checkpoint: str | Path,
    search: Iterable[str] = (),
    *,
    space: str | Path | None = None,
    trials: int = 20,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    queries: str | Path | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    listener: Listener = SILENT,
) -> Tuned:
    """Search for settings that are best on valid, and test the network of the best once.

    search has texts such as `temperature=0.05..1,log` and `negatives=shared|all`; space is a YAML
    file of such lines. config and settings are those to begin with, which are the first to be
    trained. The same call continues a tuning that was stopped.
    """
    base = load_config(DEFAULT if config is None else config, settings)
    if base.validate_every < 1:
        raise RunError("tuning compares trials on valid: set validate_every to 1 or more")
    searched = make_space(base, search, space)
    _optuna()
    choose_device(device)
    inputs = gather(
        checkpoint, backbone=backbone, dataset=dataset, queries=queries, listener=listener
    )
    if not any(len(group.hard.values) for group in inputs.store.splits.get("valid", {}).values()):
        raise RunError(f"{inputs.queries.folder} has no hard answers in 'valid' to compare trials")
    folder = Path(out or Path("tuning") / inputs.name)
    head = {
        "kind": KIND,
        "format": FORMAT,
        "search": {name: str(part) for name, part in searched.items()},
        "settings": vars(base),
        "inputs": {"checkpoint": inputs.checkpoint.sha256, "queries": inputs.queries.sha256},
    }
    _begin(folder, head)
    with _locked(folder):
        return _Tuning(folder, inputs, base, searched, trials, device, listener).run()


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise LmpnnError("tuning needs Optuna: run `pip install 'lmpnn-kge[tune]'`") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _begin(folder: Path, head: Mapping[str, Any]) -> None:
    """Make the folder with its mark; RunError if it has another tuning."""
    check_target(folder, may_replace=lambda target: (target / MARK).is_file())
    if (folder / MARK).is_file():
        if read_json(folder / MARK, head) is None:
            raise RunError(
                f"{folder} has a tuning of other settings, another space or other inputs; "
                "choose another --out"
            )
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror}") from error
    write_json(folder / MARK, head)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / MARK).open("rb") as stream:
        try:
            lock(stream.fileno())
        except BlockingIOError as error:
            raise RunError(f"{folder} is being tuned by another process") from error
        remove_leftovers_in(folder)
        yield


@dataclass(frozen=True, eq=False)
class _Tuning:
    """The work of one call; everything that it needs to continue is in the folder."""

    folder: Path
    inputs: Inputs
    base: TrainSettings
    space: Space
    wanted: int
    device: str
    listener: Listener

    def run(self) -> Tuned:
        from optuna.exceptions import OptunaError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            return self._run(self._study())
        except (OptunaError, SQLAlchemyError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> RunError:
        return RunError(
            f"{self.folder / STUDY} is damaged or cannot be written: {one_line(error)}; choose "
            "another --out"
        )

    def _run(self, study: Study) -> Tuned:
        finished = (self.folder / RESULT).is_file()
        done = len(_finished(study))
        if finished and done < self.wanted:
            raise RunError(
                f"the best of {done} trials in {self.folder} was tested already; to choose among "
                "more would be a choice on test: choose another --out"
            )
        default = self._trained(self.base, "the settings to begin with")
        for left in _unfinished(study):  # by a process that was killed
            study.tell(left.number, state=_optuna().trial.TrialState.FAIL)
            study.enqueue_trial(left.params)
        while len(_finished(study)) < self.wanted:
            self._try(study)
        trials = tuple(map(self._checked, _finished(study)))
        complete = [trial for trial in trials if not trial.pruned]
        best = max([default, *complete], key=lambda trial: trial.valid)
        return self._end(default, trials, best)

    def _study(self) -> Study:
        from sqlalchemy.engine import URL

        optuna, file = _optuna(), self.folder / STUDY
        try:
            if os.path.lexists(file):
                check_regular(file)
            address = URL.create("sqlite", database=str(file.resolve()))
            study: Study = optuna.create_study(
                study_name="tune",
                storage=optuna.storages.RDBStorage(address.render_as_string()),
                load_if_exists=True,
                direction="maximize",
                pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
            )
            study.get_trials()  # which reads all of the file
        except Exception as error:  # Optuna can fail in any way on a database that is damaged
            raise self._damaged(error) from error
        return study

    def _checked(self, trial: FrozenTrial) -> Trial:
        """A finished trial; RunError if its run folder says something else."""
        settings = make_settings(TrainSettings, {**vars(self.base), **trial.params})
        folder, recorded = self._run_folder(settings), trial.intermediate_values
        validated = _validated(folder)
        if not validated or any(recorded.get(epoch) != validated[epoch] for epoch in validated):
            raise RunError(
                f"{self.folder / STUDY} does not agree with {folder}: one of them is damaged; "
                "choose another --out"
            )
        return Trial(trial.params, max(recorded.values()), trial.state.name == "PRUNED")

    def _try(self, study: Study) -> None:
        """Train one choice of settings."""
        optuna = _optuna()
        number = len(_finished(study))
        # By the number of finished trials, so that a tuning that was killed draws as if it was not.
        study.sampler = optuna.samplers.TPESampler(seed=self.base.seed + number, n_startup_trials=4)
        trial = study.ask()
        drawn = {name: part.draw(name, trial) for name, part in self.space.items()}
        settings = make_settings(TrainSettings, {**vars(self.base), **drawn})
        label = f"trial {number + 1} of {self.wanted}"
        try:
            study.tell(trial, self._trained(settings, label, trial).valid)
        except Pruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            self.listener.note(f"{label} was stopped early: others were better on valid")

    def _trained(self, settings: TrainSettings, label: str, trial: Any = None) -> Trial:
        """Train a network, or resume it; test queries are not looked at."""
        folder = self._run_folder(settings)
        drawn = {name: getattr(settings, name) for name in self.space}
        self.listener.note(f"{label}: {', '.join(f'{k} {v}' for k, v in drawn.items())}")
        listener = self.listener
        if trial is not None:
            listener = TrialListener(listener, trial)
            for epoch, value in _validated(folder).items():  # before it was killed
                listener.report(value, epoch)
        train_on(
            self.inputs, settings, folder,
            device=self.device, resume=True, test=False, listener=listener,
        )  # fmt: skip
        validated = _validated(folder)
        if not validated:
            raise RunError(f"{folder / METRICS} is damaged: it has no validation; remove {folder}")
        return Trial(drawn, max(validated.values()))

    def _run_folder(self, settings: TrainSettings) -> Path:
        """One folder for the same settings, so that a resumed trial finds its own."""
        drawn = json.dumps({name: getattr(settings, name) for name in self.space}, sort_keys=True)
        return self.folder / f"run-{hashlib.sha256(drawn.encode()).hexdigest()[:10]}"

    def _end(self, default: Trial, trials: tuple[Trial, ...], best: Trial) -> Tuned:
        """Test the best network, once, and write what was found."""
        settings = make_settings(TrainSettings, {**vars(self.base), **best.settings})
        folder = self._run_folder(settings)
        run = train_on(
            self.inputs, settings, folder, device=self.device, resume=True, listener=self.listener
        )
        values = [(trial.valid, trial.pruned) for trial in trials]
        replace_file(to_yaml(settings).encode(), self.folder / BEST)
        replace_file(plot_trials(values, default.valid).encode(), self.folder / PLOT)
        content = {
            "kind": KIND,
            "default": asdict(default),
            "best": asdict(best),
            "trials": [asdict(trial) for trial in trials],
            "run": folder.name,
            "test": None if run.results is None else run.results.to_json(),
        }
        write_json(self.folder / RESULT, content)
        return Tuned(self.folder, default, trials, best, run.results, folder)


def _finished(study: Study) -> list[FrozenTrial]:
    return [trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED")]


def _unfinished(study: Study) -> list[FrozenTrial]:
    """Trials that were running when their process was killed."""
    return [trial for trial in study.trials if trial.state.name == "RUNNING"]


def _validated(folder: Path) -> dict[int, float]:
    """The mean MRR on valid by epoch; empty if nothing was trained yet."""
    return read_run(folder).valid if is_run(folder, RUN) else {}
