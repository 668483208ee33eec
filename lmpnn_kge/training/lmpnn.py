"""Training LMPNN: batches of queries in, a better network out."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from typing import Any

import torch
from torch import Tensor

from lmpnn_kge.errors import RunError
from lmpnn_kge.lmpnn.batches import Batch, Input, prefetched
from lmpnn_kge.lmpnn.loss import contrastive_loss
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.methods.rank import Scorer, capped, evaluate
from lmpnn_kge.methods.results import as_json
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.settings import Config
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.loop import Loop, copy_weights

MODEL = "model.safetensors"


class Trainer(Loop[Batch]):
    """Trains a network on queries, in a run folder."""

    def __init__(
        self,
        run: RunFolder[Config],
        model: Lmpnn,
        train: Mapping[str, Queries],
        valid: Mapping[str, Queries],
        dtype: torch.dtype,
    ):
        self.config, self.model = run.config, model
        optimiser = torch.optim.AdamW(
            model.parameters(),
            lr=self.config.learning_rate,
            weight_decay=self.config.weight_decay,
            fused=model.free.device.type in ("cpu", "cuda"),
        )
        super().__init__(run, model.state_dict(), optimiser, ("exp_avg", "exp_avg_sq"))
        self.scorer = Scorer.of(model, self.config)
        self.table = self.scorer.entities.to(dtype)  # [E, d]
        self.input = Input(train, len(self.table), self.config)
        ranked = {name: found.ranked for name, found in valid.items()}
        self.valid = capped(
            {name: found for name, found in ranked.items() if len(found)},
            self.config.validation_queries,
        )
        self.contrast = contrastive_loss
        if self.config.compile:
            model.mlp.compile(dynamic=True)
            self.contrast = torch.compile(contrastive_loss, dynamic=True)

    @property
    def steps(self) -> int:
        return len(self.input)

    def batches(self, epoch: int, start: int) -> Generator[Batch, None, None]:
        return prefetched(self.input.epoch(epoch, start), self.device)

    def size(self, batch: Batch) -> int:
        return len(batch)

    def loss_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        config = self.config
        wirings = wire(batch.pattern, config.union, config.depth_shift, config.constants)
        found = [self.model(wiring, batch.constants, batch.relations) for wiring in wirings]
        loss = self.contrast(
            torch.stack(found),
            self.table,
            batch.positives,
            batch.negatives,
            config.temperature,
            batch.known,
        )
        return loss, loss

    def rate(self, step: int, steps: int) -> float:
        return learning_rate(self.config, step, steps)

    def validate(self, hear: Callable[[str, int], object]) -> tuple[dict[str, Any], float] | None:
        """The metrics, of which the mean MRR over types counts."""
        if not self.valid:
            return None
        metrics = evaluate(self.scorer, self.valid, hear)
        mean = sum(found.mrr for found in metrics.values()) / len(metrics)
        return {"valid": as_json("valid", metrics)}, mean

    def save_best(self) -> None:
        facts = {"epoch": self.progress.epoch, "step": self.progress.step}
        self.folder.write_tensors(MODEL, self.weights, facts)


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


def load_best(model: Lmpnn, run: RunFolder[Config]) -> None:
    """The best weights of a run into a network of their shape."""
    tensors, _ = run.read_tensors(MODEL)
    try:
        copy_weights(model.state_dict(), tensors)
    except ValueError as error:
        file = run.path / MODEL
        raise RunError(f"{file} does not fit its backbone or its config: {error}") from error
