"""The training loop: it can be stopped anywhere, and resumes to the same result."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from lmpnn_kge.errors import RunError, one_line
from lmpnn_kge.processes import current
from lmpnn_kge.training.folder import STATE, RunFolder
from lmpnn_kge.training.gradients import set_gradients
from lmpnn_kge.training.interrupt import Interrupted, InterruptibleListener, interruptions
from lmpnn_kge.work.listener import Epoch, Listener

B = TypeVar("B")


@dataclass(frozen=True)
class Validation:
    """How well the weights do on valid."""

    value: float  # what training maximises
    record: Mapping[str, Any]  # for metrics.jsonl
    headline: Mapping[str, float]  # for people


class Task(Protocol[B]):
    """What is trained: its weights, its data and its loss."""

    @property
    def weights(self) -> Mapping[str, Tensor]: ...

    @property
    def optimiser(self) -> torch.optim.Optimizer: ...

    @property
    def moments(self) -> tuple[str, ...]:
        """What the optimiser keeps for every weight, besides its step."""

    @property
    def best_file(self) -> str:
        """Where the best weights are kept."""

    @property
    def steps(self) -> int:
        """The number of steps in an epoch."""

    def batches(self, epoch: int, start: int) -> Generator[Sequence[B], None, None]:
        """The batches of an epoch from a step on, always the same: this process's parts of each."""

    def size(self, part: B) -> int:
        """The number of queries in a part of a batch."""

    def loss(self, part: B) -> tuple[Tensor, Tensor]:
        """A part's share of the value to minimise, and of the loss to report."""

    def learning_rate(self, step: int, steps: int) -> float:
        """The learning rate at a step, of all steps of all epochs."""

    def validate(self, listener: Listener) -> Validation | None:
        """Validate the weights as they are; None if there is nothing to validate on."""

    def context(self) -> AbstractContextManager[object]:
        """The mode of torch in which all steps run."""


@dataclass
class TrainingState:
    """How far training has come."""

    epoch: int = 0  # finished epochs
    step: int = 0  # finished steps of the current epoch
    best: float | None = None  # the best validation so far
    stale: int = 0  # validations since then
    history: list[dict[str, Any]] = field(default_factory=list)  # the lines of metrics.jsonl

    @classmethod
    def of(cls, facts: Any) -> TrainingState:
        """Read from a file; TypeError if that is damaged."""
        state = cls(**facts)
        counts = (state.epoch, state.step, state.stale)
        if not all(type(count) is int for count in counts) or not isinstance(state.history, list):
            raise TypeError("its progress is not readable")
        if not isinstance(state.best, float | None):
            raise TypeError("its best validation is not a number")
        return state

    @property
    def best_epoch(self) -> int | None:
        """The epoch with the best validation."""
        validated = [record["epoch"] for record in self.history if "valid" in record]
        return validated[-1 - self.stale] if len(validated) > self.stale else None


class Loop(Generic[B]):
    """Trains a task in a folder; weights, optimiser and state are saved and restored together.

    All processes of a job run the same loop, with the same weights and state after every step. They
    differ in the parts of a batch that they compute; the first one saves.
    """

    def __init__(self, task: Task[B], folder: RunFolder[Any, Any]):
        self.task, self.folder, self.settings = task, folder, folder.settings
        self.processes = current()
        self.state = TrainingState()
        device = next(iter(task.weights.values())).device
        self.loss = torch.zeros((), device=device)  # summed over the steps of this epoch
        if self.processes.any(self.processes.first and folder.has(STATE)):
            self.restore()

    def train(self, listener: Listener) -> None:
        """Train until all epochs are done or validation stops improving; Interrupted if stopped."""
        state, settings, task = self.state, self.settings, self.task
        with task.context(), interruptions() as signalled:
            while state.epoch < settings.epochs and not self._stale():
                started = saved = time.monotonic()
                queries = 0
                listener.begin(f"epoch {state.epoch + 1}/{settings.epochs}", task.steps, state.step)
                with closing(task.batches(state.epoch, state.step)) as batches:
                    for batch in batches:
                        loss = self.step(batch)
                        queries += self.processes.count * sum(map(task.size, batch))
                        listener.advance(1, partial(_detail, loss, queries, started))
                        if self.processes.any(signalled()):
                            self.save()
                            raise Interrupted
                        if time.monotonic() - saved > 60 * settings.save_minutes:
                            self.save()
                            saved = time.monotonic()
                speed = queries / (time.monotonic() - started) if queries else None
                validation = None
                if self._validates():
                    self.save()  # so that nothing is trained again if validation is stopped
                    alone = self.processes.alone  # others wait for the end of a validation
                    validation = task.validate(
                        InterruptibleListener(listener, signalled) if alone else listener
                    )
                epoch = self._finish_epoch(speed, validation)
                self.save()
                listener.epoch(epoch)
        if self._stale() and state.epoch < settings.epochs:
            listener.note(
                f"stopped at epoch {state.epoch}: no improvement for {state.stale} validations, "
                f"kept epoch {state.best_epoch}"
            )
        if not self.folder.has(STATE):  # with no epochs to train
            self.save()

    def step(self, batch: Sequence[B]) -> Tensor:
        """One step of the optimiser; nothing in it waits for the device."""
        groups = self.task.optimiser.param_groups
        for group in groups:
            group["lr"] = self._learning_rate() * group.get("share", 1)  # of the learning rate
        weights = [weight for group in groups for weight in group["params"]]
        loss = set_gradients(weights, batch, self.task.loss, self.processes)
        self.task.optimiser.step()
        self.loss += loss
        self.state.step += 1
        return loss

    def _finish_epoch(self, speed: float | None, validation: Validation | None) -> Epoch:
        state = self.state
        epoch = Epoch(
            state.epoch + 1,
            self.settings.epochs,
            self._mean_loss(),
            self._learning_rate(),
            speed,
            {} if validation is None else validation.headline,
            None if validation is None else validation.value,
        )
        record: dict[str, Any] = {
            "epoch": epoch.number,
            "loss": epoch.loss,
            "learning_rate": epoch.learning_rate,
            "queries_per_second": speed,
        }
        if validation is not None:
            record |= validation.record
            if state.best is None or validation.value > state.best:
                state.best, state.stale = validation.value, 0
                self._save_best()
            else:
                state.stale += 1
        state.epoch, state.step = state.epoch + 1, 0
        state.history.append(record)
        self.loss.zero_()
        return epoch

    def _validates(self) -> bool:
        epoch, every = self.state.epoch + 1, self.settings.validate_every
        return every > 0 and (epoch % every == 0 or epoch == self.settings.epochs)

    def _stale(self) -> bool:
        return 0 < self.settings.patience <= self.state.stale

    def _learning_rate(self) -> float:
        step = self.state.epoch * self.task.steps + self.state.step
        return self.task.learning_rate(step, self.settings.epochs * self.task.steps)

    def _mean_loss(self) -> float:
        """The mean over the steps of this epoch; RunError if it is not finite."""
        loss = self.loss.item() / max(1, self.state.step)
        if not math.isfinite(loss):
            raise self._diverged(f"the loss is {loss}")
        return loss

    def _diverged(self, symptom: str) -> RunError:
        kept = "keeps the last good state" if self.folder.has(STATE) else "has no good state"
        return RunError(
            f"{symptom} in epoch {self.state.epoch + 1}; {self.folder.path} {kept}; start another "
            "run with a lower learning_rate"
        )

    def _save_best(self) -> None:
        # At a validation the last step of an epoch is counted, and the epoch is not yet.
        epoch = self.state.epoch + self.state.step // max(1, self.task.steps)
        self.folder.write_tensors(self.task.best_file, self.task.weights, {"epoch": epoch})

    def save(self) -> None:
        """Save all that resuming needs; never a state with numbers that are not finite."""
        if not self.processes.first:
            return
        self._mean_loss()
        if not all(bool(weights.isfinite().all()) for weights in self.task.weights.values()):
            raise self._diverged("the weights are not finite")
        tensors = {f"model.{name}": value for name, value in self.task.weights.items()}
        for number, moments in self.task.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": value for name, value in moments.items()}
        tensors["loss"] = self.loss
        self.folder.write_epochs(self.state.history)
        if self.state.best is None:
            self._save_best()
        self.folder.write_tensors(STATE, tensors, asdict(self.state))

    def restore(self) -> None:
        """Return to the state that was saved last."""
        tensors, facts = self.folder.read_tensors(STATE)
        try:
            copy_weights(self.task.weights, _part(tensors, "model."))
            self._restore_optimiser(_part(tensors, "optimiser."))
            self.loss.copy_(tensors["loss"])
            self.state = TrainingState.of(facts)
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise RunError(f"{self.folder.path / STATE} is damaged: {one_line(error)}") from error

    def _restore_optimiser(self, tensors: Mapping[str, Tensor]) -> None:
        optimiser = self.task.optimiser
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            number, _, key = name.partition(".")
            state.setdefault(int(number), {})[key] = value
        weights = [weight for group in optimiser.param_groups for weight in group["params"]]
        for index, moments in state.items():  # a weight that no query has used has none yet
            expected = {"step": torch.zeros(()), **dict.fromkeys(self.task.moments, weights[index])}
            if _kinds(moments) != _kinds(expected):
                raise ValueError("the optimiser has weights of other shapes or types")
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": state, "param_groups": groups})


def _detail(loss: Tensor, queries: int, started: float) -> str:
    speed = queries / (time.monotonic() - started)
    return f"loss {loss.item():.3f} · {speed:,.0f} queries/s"


def copy_weights(weights: Mapping[str, Tensor], source: Mapping[str, Tensor]) -> None:
    """Copy values of the same names, shapes and types; ValueError if they are others."""
    if _kinds(weights) != _kinds(source):
        raise ValueError("its weights have other names, shapes or types")
    with torch.no_grad():
        for name, value in source.items():
            weights[name].copy_(value)


def _kinds(tensors: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
