"""The loop of every training: it can be stopped anywhere, and goes on to the same end."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from lmpnn_kge.errors import RunError, short
from lmpnn_kge.training.folder import RunFolder

STATE, METRICS = "state.safetensors", "metrics.jsonl"

B = TypeVar("B")


class Watch(Protocol):
    """Hears of what training does; a progress bar or a log."""

    def start(self, folder: RunFolder[Any], facts: Mapping[str, str]) -> None: ...

    def begin(self, epoch: int, done: int, steps: int) -> None: ...

    def step(self, queries: int, loss: Tensor) -> None: ...

    def validate(self, name: str, done: int) -> None: ...

    def epoch(self, record: Mapping[str, Any]) -> None: ...


class Silent:
    """Hears and says nothing."""

    def start(self, folder: RunFolder[Any], facts: Mapping[str, str]) -> None:
        pass

    def begin(self, epoch: int, done: int, steps: int) -> None:
        pass

    def step(self, queries: int, loss: Tensor) -> None:
        pass

    def validate(self, name: str, done: int) -> None:
        pass

    def epoch(self, record: Mapping[str, Any]) -> None:
        pass


class Interrupted(Exception):
    """Training was stopped from outside; all it did is saved."""


@dataclass
class Progress:
    """How far training has come."""

    epoch: int = 0  # epochs that are finished
    step: int = 0  # steps of the next one
    best: float | None = None  # the best validation so far
    stale: int = 0  # validations since then
    history: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, facts: Any) -> Progress:
        """As a file has it; TypeError where that is damaged."""
        found = cls(**facts)
        counts = (found.epoch, found.step, found.stale)
        if not all(type(count) is int for count in counts) or not isinstance(found.history, list):
            raise TypeError("the progress is none")
        if not isinstance(found.best, float | None):
            raise TypeError("the best validation is no number")
        return found

    def finished(self, epochs: int, patience: int) -> bool:
        return self.epoch >= epochs or 0 < patience <= self.stale


class Loop(ABC, Generic[B]):
    """Weights, their optimiser and progress, which are saved and restored together."""

    def __init__(
        self,
        folder: RunFolder[Any],
        weights: Mapping[str, Tensor],
        optimiser: torch.optim.Optimizer,
        moments: tuple[str, ...],  # what the optimiser keeps of every weight, besides its step
    ):
        self.folder, self.weights, self.optimiser = folder, weights, optimiser
        self.moments = moments
        self.device = next(iter(weights.values())).device
        self.progress = Progress()
        self.loss = torch.zeros((), device=self.device)  # summed over the steps of this epoch

    @property
    @abstractmethod
    def steps(self) -> int:
        """Of an epoch."""

    @abstractmethod
    def batches(self, epoch: int, start: int) -> Generator[B, None, None]:
        """The batches of an epoch from a place on, always the same."""

    @abstractmethod
    def size(self, batch: B) -> int:
        """How many queries a batch has."""

    @abstractmethod
    def loss_of(self, batch: B) -> tuple[Tensor, Tensor]:
        """What to minimise, and the loss to tell of."""

    @abstractmethod
    def rate(self, step: int, steps: int) -> float:
        """The learning rate at a step of so many in all."""

    @abstractmethod
    def validate(self, hear: Callable[[str, int], object]) -> tuple[dict[str, Any], float] | None:
        """What to record and what to maximise; None where there is nothing to validate on."""

    @abstractmethod
    def save_best(self) -> None:
        """Keep the weights as they are as the best so far."""

    def train(self, watch: Watch) -> None:
        """Go on from where it stands until it is finished; Interrupted if it is stopped."""
        if self.folder.has(STATE):
            self.restore()
        with interruptions() as interrupted:
            config = self.folder.config
            while not self.progress.finished(config.epochs, config.patience):
                self._epoch(watch, interrupted)
        if not self.folder.has(STATE):  # no epochs are wanted
            self.save()

    def _epoch(self, watch: Watch, interrupted: Callable[[], bool]) -> None:
        progress, done = self.progress, 0
        start = saved = time.monotonic()
        watch.begin(progress.epoch, progress.step, self.steps)
        with closing(self.batches(progress.epoch, progress.step)) as batches:
            for batch in batches:
                loss = self.step(batch)
                done += self.size(batch)
                watch.step(self.size(batch), loss)
                if interrupted():
                    self.save()
                    raise Interrupted
                if time.monotonic() - saved > 60 * self.folder.config.save_minutes:
                    self.save()
                    saved = time.monotonic()
        record = {
            "epoch": progress.epoch + 1,
            "loss": self._mean_loss(),
            "learning_rate": self._rate(),
            "queries_per_second": done / (time.monotonic() - start) if done else None,
        }
        if self._validates():
            self.save()  # so that nothing is trained again if validation is stopped
            record |= self._validated(watch, interrupted)
        progress.epoch, progress.step = progress.epoch + 1, 0
        progress.history.append(record)
        self.loss.zero_()
        self.save()
        watch.epoch(record)

    def step(self, batch: B) -> Tensor:
        """One step of the optimiser; nothing in it waits for the device."""
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate() * group.get("share", 1)  # of the rate
        objective, loss = self.loss_of(batch)
        self.optimiser.zero_grad(set_to_none=True)
        objective.backward()
        self.optimiser.step()
        self.loss += loss.detach()
        self.progress.step += 1
        return loss.detach()

    def _rate(self) -> float:
        done = self.progress.epoch * self.steps + self.progress.step
        return self.rate(done, self.folder.config.epochs * self.steps)

    def _mean_loss(self) -> float:
        """Over the steps of this epoch; RunError where it is no number any more."""
        loss = self.loss.item() / max(1, self.progress.step)
        if not math.isfinite(loss):
            raise self._broken(f"the loss is {loss}")
        return loss

    def _broken(self, what: str) -> RunError:
        kept = "keeps the last good state" if self.folder.has(STATE) else "has no good state"
        return RunError(
            f"{what} in epoch {self.progress.epoch + 1}; {self.folder.path} {kept}; begin another "
            "one with a lower learning_rate"
        )

    def _validates(self) -> bool:
        config, epoch = self.folder.config, self.progress.epoch + 1
        every = config.validate_every
        return every > 0 and (epoch % every == 0 or epoch == config.epochs)

    def _validated(self, watch: Watch, interrupted: Callable[[], bool]) -> dict[str, Any]:
        def hear(name: str, done: int) -> None:
            if interrupted():
                raise Interrupted
            watch.validate(name, done)

        found = self.validate(hear)
        if found is None:
            return {}
        record, value = found
        if self.progress.best is None or value > self.progress.best:
            self.progress.best, self.progress.stale = value, 0
            self.save_best()
        else:
            self.progress.stale += 1
        return record

    def save(self) -> None:
        """All that it takes to go on; never a state that is broken."""
        self._mean_loss()
        if not all(bool(weights.isfinite().all()) for weights in self.weights.values()):
            raise self._broken("the weights are not finite")
        tensors = {f"model.{name}": value for name, value in self.weights.items()}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": value for name, value in state.items()}
        tensors["loss"] = self.loss
        lines = (json.dumps(record) + "\n" for record in self.progress.history)
        self.folder.write(METRICS, "".join(lines).encode())
        if self.progress.best is None:
            self.save_best()
        self.folder.write_tensors(STATE, tensors, asdict(self.progress))

    def restore(self) -> None:
        """Stand where it was last saved."""
        tensors, facts = self.folder.read_tensors(STATE)
        try:
            copy_weights(self.weights, _part(tensors, "model."))
            self._restore_optimiser(_part(tensors, "optimiser."))
            self.loss.copy_(tensors["loss"])
            self.progress = Progress.of(facts)
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise _damaged(self.folder, error) from error

    def _restore_optimiser(self, tensors: Mapping[str, Tensor]) -> None:
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            number, _, key = name.partition(".")
            state.setdefault(int(number), {})[key] = value
        weights = [weight for group in self.optimiser.param_groups for weight in group["params"]]
        for place, found in state.items():  # a weight that no query has used has none yet
            shapes = {"step": torch.Size(), **dict.fromkeys(self.moments, weights[place].shape)}
            if {key: value.shape for key, value in found.items()} != shapes:
                raise ValueError("the optimiser has weights of other shapes")
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})


def epochs_done(folder: RunFolder[Any]) -> int:
    """How many epochs of a run are finished."""
    if not folder.has(STATE):
        return 0
    _, facts = folder.read_tensors(STATE)
    try:
        return Progress.of(facts).epoch
    except TypeError as error:
        raise _damaged(folder, error) from error


def _damaged(folder: RunFolder[Any], error: Exception) -> RunError:
    reason = short(" ".join(str(error).split()))
    return RunError(f"{folder.path / STATE} is damaged: {reason}")


def copy_weights(weights: Mapping[str, Tensor], source: Mapping[str, Tensor]) -> None:
    """Values of the same names and shapes; ValueError where they are others."""
    if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in source.items()}:
        raise ValueError("its weights have other names or shapes")
    with torch.no_grad():
        for name, value in source.items():
            weights[name].copy_(value)


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    found = {name: value for name, value in tensors.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): value for name, value in found.items()}


@contextmanager
def interruptions() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or a polite kill has come; a second one stops at once."""
    seen = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield seen.is_set
        return
    before: dict[int, Any] = {}

    def hear(number: int, frame: Any) -> None:
        seen.set()
        signal.signal(number, before[number])

    for number in (int(signal.SIGINT), int(signal.SIGTERM)):
        before[number] = signal.signal(number, hear)
    try:
        yield seen.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
