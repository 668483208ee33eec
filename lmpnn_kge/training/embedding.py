"""Pretraining: an embedding from triples alone, for any backbone, by nothing but the contract.

Every (head, relation) that has a tail is a question, in both directions, and each direction of a
relation has parameters of its own. A question is scored against all entities, or against a few
that a batch shares, and the loss is the cross-entropy of each of its tails against all that are not
among them.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.backbones.checkpoint import Validation
from lmpnn_kge.backbones.contract import Backbone, ScoreType
from lmpnn_kge.backbones.libkge.write import write_checkpoint
from lmpnn_kge.backbones.link_prediction import Ranking, rank_triples
from lmpnn_kge.backbones.plugins import load_backbone
from lmpnn_kge.backbones.safetensors import save_backbone
from lmpnn_kge.device import choose_device, describe_device, in_one_order
from lmpnn_kge.errors import BackboneError, RunError
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.formats.libkge import SPLITS
from lmpnn_kge.graph.knowledge_graph import Graph, KnowledgeGraph, fingerprint
from lmpnn_kge.lmpnn.batches import moved_fields
from lmpnn_kge.lmpnn.softmax import cross_entropy, mask_of
from lmpnn_kge.settings import DEFAULT, Recipe, load_settings
from lmpnn_kge.training.folder import RunFolder, is_run, provenance
from lmpnn_kge.training.loop import Loop, Silent, Watch

BEST = "best.safetensors"

#: LibKGE's name for the mean reciprocal rank where the triples of all splits are filtered out.
METRIC = "mean_reciprocal_rank_filtered_with_test"

#: From so many entities on, scoring all of them for every question is told of.
MANY = 100_000

#: What every backbone has; further tensors are those of a network.
TABLES = ("entities", "relations")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Questions:
    """The (head, relation) pairs of a graph, relations in [0, 2R), each with its tails."""

    heads: Ints  # [n]
    relations: Ints  # [n]
    tails: Answers

    @classmethod
    def of(cls, triples: Ints, relations: int) -> Questions:
        s, p, o = triples.T
        rows = np.stack([
            np.concatenate([p, p + relations]), np.concatenate([s, o]), np.concatenate([o, s])
        ])  # fmt: skip
        rows = np.unique(rows, axis=1)  # sorted by relation, head and tail
        new = np.ones(rows.shape[1], bool)
        new[1:] = (np.diff(rows[:2], axis=1) != 0).any(axis=0)
        offsets = np.append(new.nonzero()[0], len(new))
        return cls(rows[1, new], rows[0, new], Answers(offsets, rows[2].astype(np.int32)))

    def __len__(self) -> int:
        return len(self.heads)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some questions, and all their tails with the question that each belongs to."""

    heads: Tensor  # [n]
    relations: Tensor  # [n]
    offsets: list[int]  # [n + 1], where the tails of a question begin
    owners: Tensor  # [m]
    tails: Tensor  # [m]
    weights: Tensor  # [m], of the losses; 1 in all
    negatives: Tensor | None  # [K], or None for all entities
    seed: int  # of what dropout leaves out

    def to(self, device: torch.device) -> Batch:
        """On another device."""
        return replace(self, **moved_fields(self, device))


class Pretrainer(Loop[Batch]):
    """Trains a backbone's tensors on the triples of a graph."""

    def __init__(
        self,
        folder: RunFolder[Recipe],
        kind: type[Backbone],
        graph: Graph,
        device: torch.device,
    ):
        self.recipe, self.graph = folder.config, graph
        self.triples = {split: graph.triples(split) for split in SPLITS}
        relations = len(graph.relation_ids)
        self.template = kind.random(
            len(graph.entity_ids),
            relations,
            kind.entity_width(self.recipe.dim),
            reciprocal=True,
            seed=self.recipe.seed,
            entity_ids=graph.entity_ids,
            relation_ids=graph.relation_ids,
        ).to(device)
        self.parameters = {
            name: (tensor * self.recipe.init if name == "entities" else tensor).requires_grad_()
            for name, tensor in self.template.tensors().items()
            if tensor.is_floating_point()
        }
        tables = [self.parameters[name] for name in TABLES]
        network = [t for name, t in self.parameters.items() if name not in TABLES]
        groups: list[dict[str, Any]] = [{"params": tables}]
        if network:
            groups.append({"params": network, "share": self.recipe.network_share})
        optimiser = torch.optim.Adagrad(groups, lr=self.recipe.learning_rate)
        super().__init__(folder, self.parameters, optimiser, ("sum",))
        self.questions = Questions.of(self.triples["train"], relations)

    @property
    def backbone(self) -> Backbone:
        """As it is now, frozen."""
        now = {name: tensor.detach() for name, tensor in self.parameters.items()}
        return self.template.with_tensors(now)

    def best(self) -> tuple[Backbone, int]:
        """As it was at its best validation, frozen, and the epochs it had behind it then."""
        tensors, facts = self.folder.read_tensors(BEST)
        moved = {name: tensor.to(self.device) for name, tensor in tensors.items()}
        return self.template.with_tensors(moved), int(facts["epoch"])

    def train(self, watch: Watch) -> None:
        with in_one_order(self.device):  # of the rows of a table that many questions share
            super().train(watch)

    def step(self, batch: Batch) -> Tensor:
        # torch warns until one says whether its sparse gradients are to be checked; they are right.
        with torch.sparse.check_sparse_tensor_invariants(enable=False):
            return super().step(batch)

    @property
    def steps(self) -> int:
        return -(-len(self.questions) // self.recipe.batch_size)

    def batches(self, epoch: int, start: int) -> Generator[Batch, None, None]:
        """Every question once; what a batch holds depends on seed, epoch and place alone."""
        seed, size = self.recipe.seed, self.recipe.batch_size
        order = np.random.default_rng([seed, epoch]).permutation(len(self.questions))
        for place in range(start, self.steps):
            rows = order[place * size : (place + 1) * size]
            yield self._batch(rows, np.random.default_rng([seed, epoch, 1 + place])).to(self.device)

    def _batch(self, rows: Ints, random: np.random.Generator) -> Batch:
        questions, entities = self.questions, self.template.num_entities
        owners, places = questions.tails.places(rows)
        counts = np.bincount(owners, minlength=len(rows))  # of these alone: there may be millions
        shares = 1 / counts if self.recipe.loss == "kvsall" else np.ones(len(rows))
        weights = shares[owners] / (shares @ counts)
        noise = None
        if 0 < self.recipe.negatives < entities:
            noise = torch.from_numpy(random.choice(entities, self.recipe.negatives, replace=False))
        return Batch(
            torch.from_numpy(questions.heads[rows]),
            torch.from_numpy(questions.relations[rows]),
            [0, *np.cumsum(counts).tolist()],
            torch.from_numpy(owners),
            torch.from_numpy(questions.tails.values[places].astype(np.int64)),
            torch.from_numpy(weights).to(self.template.entities.dtype),
            noise,
            int(random.integers(2**63)),
        )

    def size(self, batch: Batch) -> int:
        return len(batch.heads)

    def loss_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The cross-entropy with a penalty on what every triple looks up, and without."""
        recipe, relations = self.recipe, self.parameters["relations"]
        heads = self._look_up(batch.heads, batch)
        kept = {"relations": _dropout(relations, recipe.relation_dropout, batch.seed)}
        model = self.template.with_tensors({**self.parameters, **kept})
        dropped = _dropout(heads, recipe.entity_dropout, batch.seed + 1)
        estimates = model.forward(dropped, batch.relations)
        loss = self._cross_entropy(model, estimates, batch)
        if not recipe.penalty:
            return loss, loss
        power = 3 if recipe.norm == "n3" else 2

        def size(rows: Tensor) -> Tensor:
            return rows.abs().pow(power).sum(1)

        asked = size(heads) + size(F.embedding(batch.relations, relations))
        sizes = asked[batch.owners] + size(self._look_up(batch.tails, batch))
        return loss + recipe.penalty * sizes.mean(), loss

    def _cross_entropy(self, model: Backbone, estimates: Tensor, batch: Batch) -> Tensor:
        """Of the tails of all questions, each tail or each question counting the same."""
        entities, smoothing = self.parameters["entities"], self.recipe.label_smoothing
        inner = model.score_type is ScoreType.INNER_PRODUCT
        if inner and batch.negatives is None:
            pairs = (batch.offsets, batch.owners, batch.tails, batch.weights)
            return cross_entropy(estimates, entities, *pairs, smoothing)
        noise = entities if batch.negatives is None else self._look_up(batch.negatives, batch)
        if inner:
            scores = estimates @ noise.T  # [n, K]
        else:
            scores = -model.distances(estimates, noise, batch.relations)
        right = mask_of(batch.owners, batch.tails, batch.negatives, scores.shape, len(entities))
        wrong = scores.masked_fill(right, -torch.inf)
        more = math.log(len(entities) / len(noise))  # for those that were not drawn
        tails = self._look_up(batch.tails, batch)
        truth = model.score_pairs(estimates[batch.owners], tails, batch.relations[batch.owners])
        losses = F.softplus(wrong.logsumexp(1)[batch.owners] + more - truth)
        if smoothing:
            losses = losses + smoothing * (truth - scores.mean(1)[batch.owners])
        return (batch.weights * losses).sum()

    def _look_up(self, ids: Tensor, batch: Batch) -> Tensor:
        """Rows of the entities, [n, d].

        Where a batch needs some of them only, a CPU keeps the gradient of these and no other: a
        step then takes as long on a large graph as on a small one. A GPU would wait for their
        number.
        """
        sparse = batch.negatives is not None and self.device.type == "cpu"
        return F.embedding(ids, self.parameters["entities"], sparse=sparse)

    def rate(self, step: int, steps: int) -> float:
        """On its way down to 0."""
        return self.recipe.learning_rate * (1 - step / max(1, steps))

    def validate(self, hear: Callable[[str, int], object]) -> tuple[dict[str, Any], float] | None:
        if not len(self.triples["valid"]):
            return None
        hear("link prediction", 0)
        ranking = self.rank(self.backbone, "valid", self.recipe.validation_triples)
        return {"valid": {"mrr": ranking.mrr, "hits@10": ranking.hits_at_10}}, ranking.mrr

    def rank(self, backbone: Backbone, split: str, most: int | None = None) -> Ranking:
        """Filtered link prediction on a split, or on so many of its triples, evenly spread."""
        asked = self.triples[split]
        if most is not None and len(asked) > most:
            asked = asked[np.linspace(0, len(asked) - 1, most).astype(np.int64)]
        known = np.concatenate(list(self.triples.values()))
        try:
            return rank_triples(backbone, asked, known)
        except BackboneError as error:
            raise RunError(f"{error}; begin another one with a lower learning_rate") from error

    def save_best(self) -> None:
        # At a validation the last step of an epoch is counted, and the epoch is not yet.
        facts = {"epoch": self.progress.epoch + self.progress.step // self.steps}
        self.folder.write_tensors(BEST, self.parameters, facts)


def pretrain(
    backbone: str,
    dataset: str | Path,
    file: str | Path,
    *,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    resume: bool = False,
    watch: Watch | None = None,
) -> Ranking | None:
    """Train a backbone on a graph and write it to a file: as .safetensors, or a LibKGE package.

    What comes back is its link prediction on test, None where the graph has no test triples. The
    state is kept in FILE.training until the file is written; resume goes on from there.
    """
    file, place = Path(file), Path(f"{file}.training")
    if file.exists() and not is_run(place):
        raise RunError(f"{file} is there already; remove it, or write to another file")
    kind, graph = load_backbone(backbone), KnowledgeGraph.open(dataset)
    if not len(graph.triples("train")):
        raise RunError(f"{dataset} has no training triples to learn from")
    inner = kind.score_type is ScoreType.INNER_PRODUCT
    names: list[str | Path] = [DEFAULT, *([] if inner else ["distance"])]
    names += [] if config in (None, DEFAULT) else [config]
    recipe = load_settings(Recipe, names, settings)
    width = kind.entity_width(recipe.dim)
    with TemporaryDirectory() as aside:  # an error where what is trained could not be written
        smallest = kind.random(2, 1, width, reciprocal=True)
        _write(Path(aside) / file.name, smallest, graph.name, 0, [])
    given = vars(recipe) if config is not None else (settings or {})
    asked = {key: getattr(recipe, key) for key in given}
    chosen = choose_device(device)
    made_of = {"backbone": backbone, "graph": fingerprint(graph)}
    if resume and is_run(place, Recipe):
        folder = RunFolder.open(place, Recipe)
        _check_same(folder, {**asked, **made_of})
    else:
        if is_run(place):
            raise RunError(f"{file} was begun in {place}; go on with --resume, or remove that")
        facts = {**provenance(), **made_of, "dataset": str(Path(dataset).resolve())}
        folder = RunFolder.create(place, recipe, facts, {})
    with folder.alone():
        trainer = Pretrainer(folder, kind, graph, chosen)
        sizes = f"{trainer.template.num_entities:,} entities, {len(graph.relation_ids):,} relations"
        told = {
            "backbone": f"{backbone} of width {width}",
            "graph": f"{sizes} ({dataset})",
            "computes": f"on {describe_device(chosen)}",
        }
        for number, note in enumerate(_notes(graph, inner and not recipe.negatives), start=1):
            told[f"note {number}"] = note
        watch = watch or Silent()
        watch.start(folder, told)
        trainer.train(watch)
        best, epoch = trainer.best()
        _write(file, best, graph.name, epoch, trainer.progress.history)
        ranking = trainer.rank(best, "test") if len(trainer.triples["test"]) else None
    shutil.rmtree(place)
    return ranking


def _notes(graph: Graph, all_scored: bool) -> Iterator[str]:
    """What to know of a graph before the long wait."""
    if all_scored and len(graph.entity_ids) >= MANY:
        yield "every entity is scored for every question; --set negatives=1024 is faster"
    if unseen := len(graph.entity_ids) - len(np.unique(graph.triples("train")[:, ::2])):
        yield f"{unseen:,} of its entities are in no training triple"


def _dropout(values: Tensor, share: float, seed: int) -> Tensor:
    """Without that share of them, the others larger by as much."""
    if not share:
        return values
    random = torch.Generator(values.device).manual_seed(seed)
    kept = torch.rand(values.shape, generator=random, device=values.device) >= share
    return values * kept / (1 - share)


def _write(
    file: Path, backbone: Backbone, dataset: str, epoch: int, history: Sequence[Mapping[str, Any]]
) -> None:
    """As the file's name says: any backbone as .safetensors, what LibKGE has as its package."""
    if file.suffix == ".safetensors":
        save_backbone(backbone, file, dataset=dataset)
        return
    validations = [
        Validation(METRIC, record["valid"]["mrr"], record["epoch"])
        for record in history
        if "valid" in record and record["epoch"] <= epoch
    ]
    write_checkpoint(file, backbone, dataset=dataset, epoch=epoch, validations=validations)


def _check_same(folder: RunFolder[Recipe], asked: Mapping[str, Any]) -> None:
    """RunError where something else is asked for than what was begun."""
    begun = {**folder.facts, **vars(folder.config)}
    differing = [key for key, value in asked.items() if begun.get(key) != value]
    if differing:
        raise RunError(
            f"{folder.path} began with another {', '.join(differing)}; go on with the same, or "
            "write to another file"
        )
