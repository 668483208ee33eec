"""Training LMPNN: batches of queries in, a better network out."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.errors import RunError
from lmpnn_kge.lmpnn.batches import Batch, Input, Parts, prefetched
from lmpnn_kge.lmpnn.loss import contrastive_loss
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.rank import capped, evaluate
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.loop import Validation, copy_weights
from lmpnn_kge.training.provenance import RunProvenance
from lmpnn_kge.work.listener import Listener

MODEL = "model.safetensors"


class LmpnnTask:
    """A network, the queries it learns from and the queries it is validated on."""

    best_file = MODEL
    moments = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        model: Lmpnn,
        settings: TrainSettings,
        train: Mapping[str, Queries],
        valid: Mapping[str, Queries],
        dtype: torch.dtype,
    ):
        self.model, self.settings = model, settings
        self.weights = model.state_dict()
        self.device = model.free.device
        self.optimiser: torch.optim.Optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),
        )
        self.method = LmpnnMethod.of(model, settings)
        # [E, d] of length 1; if the table is too large, each batch has the rows that it needs
        unit = self.method.entities
        self.table = None if unit is None else unit.to(dtype)
        self.dtype = dtype
        self.input = Input(_about_each_variable(train), model.backbone.num_entities, settings)
        ranked = {name: queries.ranked for name, queries in valid.items()}
        self.valid = capped(
            {name: queries for name, queries in ranked.items() if len(queries)},
            settings.validation_queries,
        )
        self.contrast = contrastive_loss
        if settings.compile:
            model.mlp.compile(dynamic=True)
            self.contrast = torch.compile(contrastive_loss, dynamic=True)

    @property
    def steps(self) -> int:
        return len(self.input)

    def batches(self, epoch: int, start: int) -> Generator[Parts, None, None]:
        batches = self.input.epoch(epoch, start)
        if self.table is None:  # the rows are read by the thread, before the step that needs them
            table = self.model.backbone.entities
            batches = (tuple(part.with_rows(table) for part in parts) for parts in batches)
        return prefetched(batches, self.device)

    def size(self, part: Batch) -> int:
        return len(part) if part.share else 0

    def loss(self, part: Batch) -> tuple[Tensor, Tensor]:
        """A part's share of the contrastive loss, which is both minimised and reported."""
        settings = self.settings
        wirings = wire(part.pattern, settings.union, settings.depth_shift, settings.constants)
        given = (part.constants, part.relations, part.rows)
        answers = [self.model(wiring, *given) for wiring in wirings]
        unit = self.table
        if unit is None:
            assert part.rows is not None
            unit = F.normalize(part.rows, dim=-1).to(self.dtype)
        loss = self.contrast(
            torch.stack(answers),
            unit,
            part.positives,
            part.negatives,
            settings.temperature,
            part.known,
        )
        return part.share * loss, part.share * loss

    def learning_rate(self, step: int, steps: int) -> float:
        return scheduled_rate(self.settings, step, steps)

    def validate(self, listener: Listener) -> Validation | None:
        """Results on valid queries, whose mean MRR over types is maximised."""
        if not self.valid:
            return None
        results = evaluate(self.method, self.valid, "valid", listener)
        return Validation(results.mean, {"valid": results.to_json()}, results.headline)

    def context(self) -> AbstractContextManager[object]:
        return nullcontext()


def _about_each_variable(queries: Mapping[str, Queries]) -> dict[str, Queries]:
    """Queries about one variable each: of those whose answers are tuples, all free variables."""
    return {
        f"{name} {number}" if number else name: part
        for name, group in queries.items()
        for number, part in enumerate(group.marginals)
    }


def scheduled_rate(settings: TrainSettings, step: int, steps: int) -> float:
    """The learning rate at a step of all steps: a linear warm-up, then constant or falling to 0."""
    if step < settings.warmup:
        return settings.learning_rate * (step + 1) / settings.warmup
    done = (step - settings.warmup) / max(1, steps - settings.warmup)
    if settings.schedule == "linear":
        return settings.learning_rate * (1 - done)
    if settings.schedule == "cosine":
        return settings.learning_rate * (1 + math.cos(math.pi * done)) / 2
    return settings.learning_rate


def load_best(model: Lmpnn, run: RunFolder[TrainSettings, RunProvenance]) -> None:
    """Load the best weights of a run into a network of their shape."""
    tensors, _ = run.read_tensors(MODEL)
    try:
        copy_weights(model.state_dict(), tensors)
    except ValueError as error:
        file = run.path / MODEL
        raise RunError(f"{file} does not fit its backbone or its settings: {error}") from error
