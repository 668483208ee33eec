"""Training an embedding from triples, for any backbone, through nothing but the contract.

A question (head, relation) is scored against all entities, or against some that its batch shares.
The loss is the cross-entropy of each of its tails against all entities that are not its tails. Both
directions of a relation have parameters of their own.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.link_prediction import Ranking, rank_triples
from lmpnn_kge.backbones.messages import ScoreType
from lmpnn_kge.device import in_one_order
from lmpnn_kge.errors import BackboneError, RunError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS, spread_evenly
from lmpnn_kge.lmpnn.softmax import cross_entropy, mask_of
from lmpnn_kge.settings.kinds import PretrainSettings
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.loop import Validation
from lmpnn_kge.training.provenance import PretrainProvenance
from lmpnn_kge.training.questions import Batch, QuestionInput, Questions
from lmpnn_kge.work.listener import Listener

BEST = "best.safetensors"

#: The tensors that every backbone has; others are those of a network.
TABLES = ("entities", "relations")


class EmbeddingTask:
    """The tensors of a backbone, and the triples of a graph that they learn from."""

    best_file = BEST
    moments = ("sum",)

    def __init__(
        self,
        backbone_class: type[Backbone],
        graph: KnowledgeGraph,
        settings: PretrainSettings,
        device: torch.device,
    ):
        self.settings, self.device = settings, device
        self.triples = {split: graph.triples(split) for split in SPLITS}
        self.template = backbone_class.random(
            graph.num_entities,
            graph.num_relations,
            backbone_class.entity_width(settings.dim),
            reciprocal=True,
            seed=settings.seed,
            entity_ids=graph.entity_ids,
            relation_ids=graph.relation_ids,
        ).to(device)
        self.weights = {
            name: (tensor * settings.init if name == "entities" else tensor).requires_grad_()
            for name, tensor in self.template.tensors().items()
            if tensor.is_floating_point()
        }
        tables = [self.weights[name] for name in TABLES]
        network = [tensor for name, tensor in self.weights.items() if name not in TABLES]
        groups: list[dict[str, Any]] = [{"params": tables}]
        if network:
            groups.append({"params": network, "share": settings.network_share})
        self.optimiser: torch.optim.Optimizer = torch.optim.Adagrad(
            groups, lr=settings.learning_rate
        )
        questions = Questions.of(self.triples["train"], graph.num_relations)
        self.input = QuestionInput(questions, graph.num_entities, settings)

    @property
    def backbone(self) -> Backbone:
        """The embedding as it is now, frozen."""
        frozen = {name: tensor.detach() for name, tensor in self.weights.items()}
        return self.template.with_tensors(frozen)

    @property
    def steps(self) -> int:
        return len(self.input)

    def batches(self, epoch: int, start: int) -> Generator[list[Batch], None, None]:
        for parts in self.input.epoch(epoch, start):
            yield [part.to(self.device) for part in parts]

    def size(self, part: Batch) -> int:
        return len(part.heads) if part.share else 0

    @contextmanager
    def context(self) -> Iterator[None]:
        # Many questions share the rows of a table: their gradients must be added in one order for
        # the same bits. torch warns unless it knows whether to check sparse gradients; ours are
        # right.
        with (
            in_one_order(self.device),
            torch.sparse.check_sparse_tensor_invariants(enable=False),
        ):
            yield

    def loss(self, part: Batch) -> tuple[Tensor, Tensor]:
        """A part's cross-entropy with a penalty on the rows of every triple, and without it."""
        settings, relations = self.settings, self.weights["relations"]
        heads = self._look_up(part.heads, part)
        kept = {"relations": _dropout(relations, settings.relation_dropout, part.seed)}
        model = self.template.with_tensors({**self.weights, **kept})
        dropped = _dropout(heads, settings.entity_dropout, part.seed + 1, part.first, part.whole)
        estimates = model.forward(dropped, part.relations)
        loss = self._cross_entropy(model, estimates, part)
        if not settings.penalty:
            return loss, loss
        power = 3 if settings.norm == "n3" else 2

        def size(rows: Tensor) -> Tensor:
            return rows.abs().pow(power).sum(1)

        questions = size(heads) + size(F.embedding(part.relations, relations))
        triples = questions[part.owners] + size(self._look_up(part.tails, part))
        return loss + settings.penalty * part.share * triples.mean(), loss

    def _cross_entropy(self, model: Backbone, estimates: Tensor, batch: Batch) -> Tensor:
        """The weighted loss over the tails of all questions."""
        entities, smoothing = self.weights["entities"], self.settings.label_smoothing
        inner = model.score_type is ScoreType.INNER_PRODUCT
        if inner and batch.negatives is None:
            pairs = (batch.offsets, batch.owners, batch.tails, batch.weights)
            return cross_entropy(estimates, entities, *pairs, smoothing)
        noise = entities if batch.negatives is None else self._look_up(batch.negatives, batch)
        if inner:
            scores = estimates @ noise.T  # [n, K]
        else:
            scores = -model.distances(estimates, noise, batch.relations)
        is_tail = mask_of(batch.owners, batch.tails, batch.negatives, scores.shape, len(entities))
        wrong = scores.masked_fill(is_tail, -torch.inf)
        undrawn = math.log(len(entities) / len(noise))  # the drawn ones stand for all
        tails = self._look_up(batch.tails, batch)
        truth = model.score_pairs(estimates[batch.owners], tails, batch.relations[batch.owners])
        losses = F.softplus(wrong.logsumexp(1)[batch.owners] + undrawn - truth)
        if smoothing:
            losses = losses + smoothing * (truth - scores.mean(1)[batch.owners])
        return (batch.weights * losses).sum()

    def _look_up(self, ids: Tensor, batch: Batch) -> Tensor:
        """Rows of the entity table, [n, d].

        If a batch needs only some of them, a CPU keeps the gradient of these rows alone, so that a
        step takes as long on a large graph as on a small one. A GPU would wait for their number.
        """
        sparse = batch.negatives is not None and self.device.type == "cpu"
        return F.embedding(ids, self.weights["entities"], sparse=sparse)

    def learning_rate(self, step: int, steps: int) -> float:
        """Falling linearly to 0."""
        return self.settings.learning_rate * (1 - step / max(1, steps))

    def validate(self, listener: Listener) -> Validation | None:
        """Link prediction on valid, whose MRR is maximised."""
        if not len(self.triples["valid"]):
            return None
        listener.begin("validating")
        listener.advance(0)
        ranking = self.rank(self.backbone, "valid", self.settings.validation_triples)
        metrics = {"mrr": ranking.mrr, "hits@10": ranking.hits_at_10}
        return Validation(ranking.mrr, {"valid": metrics}, metrics)

    def rank(self, backbone: Backbone, split: str, most: int | None = None) -> Ranking:
        """Filtered link prediction on a split, or on at most this many of its triples."""
        triples = self.triples[split]
        if most is not None:
            triples = triples[spread_evenly(len(triples), most)]
        known = np.concatenate(list(self.triples.values()))
        try:
            return rank_triples(backbone, triples, known)
        except BackboneError as error:
            raise RunError(f"{error}; start another run with a lower learning_rate") from error

    def best(self, folder: RunFolder[PretrainSettings, PretrainProvenance]) -> tuple[Backbone, int]:
        """The embedding at its best validation, frozen, and the number of epochs it had then."""
        tensors, facts = folder.read_tensors(BEST)
        moved = {name: tensor.to(self.device) for name, tensor in tensors.items()}
        return self.template.with_tensors(moved), int(facts["epoch"])


def _dropout(
    values: Tensor, share: float, seed: int, first: int = 0, whole: int | None = None
) -> Tensor:
    """Zero that share of the values, and scale the others up to the same mean.

    The values are the rows from `first` on of a whole, for which the random numbers are drawn.
    """
    if not share:
        return values
    random = torch.Generator(values.device).manual_seed(seed)
    shape = (len(values) if whole is None else whole, *values.shape[1:])
    drawn = torch.rand(shape, generator=random, device=values.device)
    return values * (drawn[first : first + len(values)] >= share) / (1 - share)
