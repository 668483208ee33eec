"""Training: batches in, a better network out; it can stop anywhere and goes on to the same end."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.batches import Batch, Input, prefetched
from lmpnn_kge.columns import Queries
from lmpnn_kge.config import Config
from lmpnn_kge.errors import RunError, short
from lmpnn_kge.evaluation import Scorer, capped, evaluate, having_hard
from lmpnn_kge.loss import contrastive_loss
from lmpnn_kge.material import Material
from lmpnn_kge.network import Lmpnn
from lmpnn_kge.results import as_json
from lmpnn_kge.run_folder import RunFolder
from lmpnn_kge.wiring import wire

STATE, MODEL, METRICS = "state.safetensors", "model.safetensors", "metrics.jsonl"


class Watch(Protocol):
    """Hears of what training does; a progress bar or a log."""

    def start(self, run: RunFolder, material: Material, device: str) -> None: ...

    def begin(self, epoch: int, done: int, steps: int) -> None: ...

    def step(self, queries: int, loss: Tensor) -> None: ...

    def validate(self, name: str, done: int) -> None: ...

    def epoch(self, record: Mapping[str, Any]) -> None: ...


class Silent:
    """Hears and says nothing."""

    def start(self, run: RunFolder, material: Material, device: str) -> None:
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

    def check(self) -> None:
        """TypeError where it comes from a file that is damaged."""
        counts = (self.epoch, self.step, self.stale)
        if not all(type(count) is int for count in counts) or not isinstance(self.history, list):
            raise TypeError("the progress is none")
        if not isinstance(self.best, float | None):
            raise TypeError("the best validation is no number")

    def finished(self, config: Config) -> bool:
        return self.epoch >= config.epochs or 0 < config.patience <= self.stale


class Trainer:
    """A network, its optimiser and its progress: what is saved and restored together."""

    def __init__(
        self,
        run: RunFolder,
        model: Lmpnn,
        train: Mapping[str, Queries],
        valid: Mapping[str, Queries],
        dtype: torch.dtype,
    ):
        self.run, self.config, self.model = run, run.config, model
        self.device = model.free.device
        self.unit = F.normalize(model.backbone.entities, dim=-1)  # [E, d]
        self.table = self.unit.to(dtype)
        self.input = Input(train, len(self.unit), self.config)
        ranked = {name: having_hard(found) for name, found in valid.items()}
        self.valid = capped(
            {name: found for name, found in ranked.items() if len(found)},
            self.config.validation_queries,
        )
        self.optimiser = torch.optim.AdamW(
            model.parameters(),
            lr=self.config.learning_rate,
            weight_decay=self.config.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),
        )
        self.progress = Progress()
        self.loss = torch.zeros((), device=self.device)  # summed over the steps of this epoch
        self.loss_of = contrastive_loss
        if self.config.compile:
            model.mlp.compile(dynamic=True)
            self.loss_of = torch.compile(contrastive_loss)

    def train(self, watch: Watch) -> None:
        """Go on from where the run stands until it is finished; Interrupted if it is stopped."""
        if self.run.has(STATE):
            self.restore()
        with interruptions() as interrupted:
            while not self.progress.finished(self.config):
                self._epoch(watch, interrupted)
        if not self.run.has(STATE):  # no epochs are wanted
            self.save()

    def _epoch(self, watch: Watch, interrupted: Callable[[], bool]) -> None:
        progress, done = self.progress, 0
        start = saved = time.monotonic()
        watch.begin(progress.epoch, progress.step, len(self.input))
        batches = self.input.epoch(progress.epoch, progress.step)
        with closing(prefetched(batches, self.device)) as ready:
            for batch in ready:
                loss = self.step(batch)
                progress.step += 1
                done += len(batch)
                watch.step(len(batch), loss)
                if interrupted():
                    self.save()
                    raise Interrupted
                if time.monotonic() - saved > 60 * self.config.save_minutes:
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
            self._validate(record, watch, interrupted)
        progress.epoch, progress.step = progress.epoch + 1, 0
        progress.history.append(record)
        self.loss.zero_()
        self.save()
        watch.epoch(record)

    def step(self, batch: Batch) -> Tensor:
        """One step of the optimiser; nothing in it waits for the device."""
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate()
        wirings = wire(batch.pattern, self.config.union, self.config.depth_shift)
        found = [self.model(wiring, batch.constants, batch.relations) for wiring in wirings]
        loss = self.loss_of(
            torch.stack(found),
            self.table,
            batch.positives,
            batch.negatives,
            self.config.temperature,
        )
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        self.loss += loss.detach()
        return loss.detach()

    def _rate(self) -> float:
        """The learning rate of the next step."""
        steps = len(self.input)
        done = self.progress.epoch * steps + self.progress.step
        return learning_rate(self.config, done, self.config.epochs * steps)

    def _mean_loss(self) -> float:
        """Over the steps of this epoch; RunError where it is no number any more."""
        loss = self.loss.item() / max(1, self.progress.step)
        if not math.isfinite(loss):
            raise self._broken(f"the loss is {loss}")
        return loss

    def _broken(self, what: str) -> RunError:
        kept = "keeps the last good state" if self.run.has(STATE) else "has no good state"
        also = " or precision=fp32" if self.table.dtype == torch.bfloat16 else ""
        return RunError(
            f"{what} in epoch {self.progress.epoch + 1}; {self.run.path} {kept}; begin another run "
            f"with a lower learning_rate{also}"
        )

    def _validates(self) -> bool:
        every, epoch = self.config.validate_every, self.progress.epoch + 1
        return (
            bool(self.valid) and every > 0 and (epoch % every == 0 or epoch == self.config.epochs)
        )

    def _validate(
        self, record: dict[str, Any], watch: Watch, interrupted: Callable[[], bool]
    ) -> None:
        def hear(name: str, done: int) -> None:
            if interrupted():
                raise Interrupted
            watch.validate(name, done)

        scorer = Scorer(self.model, self.unit, self.config.union, self.config.depth_shift)
        metrics = evaluate(scorer, self.valid, hear)
        record["valid"] = as_json("valid", metrics)
        mean = sum(found.mrr for found in metrics.values()) / len(metrics)
        if self.progress.best is None or mean > self.progress.best:
            self.progress.best, self.progress.stale = mean, 0
            self._save_model()
        else:
            self.progress.stale += 1

    def save(self) -> None:
        """All that it takes to go on; never a state that is broken."""
        self._mean_loss()
        if not all(bool(weights.isfinite().all()) for weights in self.model.parameters()):
            raise self._broken("the weights are not finite")
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": value for name, value in state.items()}
        tensors["loss"] = self.loss
        lines = (json.dumps(record) + "\n" for record in self.progress.history)
        self.run.write(METRICS, "".join(lines).encode())
        if self.progress.best is None:
            self._save_model()
        self.run.write_tensors(STATE, tensors, asdict(self.progress))

    def _save_model(self) -> None:
        facts = {"epoch": self.progress.epoch, "step": self.progress.step}
        self.run.write_tensors(MODEL, self.model.state_dict(), facts)

    def restore(self) -> None:
        """Stand where the run was last saved."""
        tensors, facts = self.run.read_tensors(STATE)
        load_weights(self.model, _part(tensors, "model."), f"{self.run.path / STATE}")
        try:
            self._restore_optimiser(_part(tensors, "optimiser."))
            self.loss.copy_(tensors["loss"])
            self.progress = Progress(**facts)
            self.progress.check()
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            reason = short(" ".join(str(error).split()))
            raise RunError(f"{self.run.path / STATE} is damaged: {reason}") from error

    def _restore_optimiser(self, tensors: Mapping[str, Tensor]) -> None:
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            number, _, key = name.partition(".")
            state.setdefault(int(number), {})[key] = value
        weights = list(self.model.parameters())
        for place, found in state.items():  # a weight that no query has used has none yet
            own = weights[place].shape
            shapes = {"step": torch.Size(), "exp_avg": own, "exp_avg_sq": own}
            if {key: value.shape for key, value in found.items()} != shapes:
                raise ValueError("the optimiser has weights of other shapes")
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})


def learning_rate(config: Config, step: int, steps: int) -> float:
    """At a step of so many: after a linear warm-up constant, or down to 0."""
    if step < config.warmup:
        return config.learning_rate * (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, steps - config.warmup)
    if config.schedule == "linear":
        return config.learning_rate * (1 - done)
    if config.schedule == "cosine":
        return config.learning_rate * (1 + math.cos(math.pi * done)) / 2
    return config.learning_rate


def load_weights(model: Lmpnn, tensors: Mapping[str, Tensor], source: str) -> None:
    """Weights into a network of the same shape; RunError where they do not fit."""
    try:
        model.load_state_dict(dict(tensors))
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{source} does not fit its backbone or its config: {reason}") from error


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


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
