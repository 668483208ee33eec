"""LMPNN as a way to answer queries: an entity is as good as it is near to an answer embedding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.backbones.placing import most_rows
from lmpnn_kge.errors import QueryError, RunError
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import Wiring, wire
from lmpnn_kge.methods.method import Scores
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.settings.kinds import ConstantsMode, TrainSettings, UnionMode

#: The length of a row of scores is a multiple of this: one that is not, as the number of entities
#: usually is, makes the product that writes it almost twice as slow on a CPU.
ALIGNED = 16

#: Layers of a formula that is deeper than any that a network is trained on.
DEEP = 16

#: With more entities, scores of all entities are held for so few queries that blocks are faster.
MANY = 2**19


@dataclass(frozen=True)
class LmpnnMethod:
    """A `Method`: the score is the cosine of an answer embedding and an entity."""

    model: Lmpnn
    entities: Tensor | None  # [E, d], of length 1; None if the device holds only blocks of it
    union: UnionMode
    depth_shift: int = 0
    constants: ConstantsMode = "updated"

    @classmethod
    def of(cls, model: Lmpnn, config: TrainSettings) -> LmpnnMethod:
        """A network with the settings it was trained with."""
        in_blocks = model.backbone.table_memory is not None
        unit = None if in_blocks else F.normalize(model.backbone.entities, dim=-1)
        return cls(model, unit, config.union, config.depth_shift, config.constants)

    @property
    def num_entities(self) -> int:
        return len(self.model.backbone.entities if self.entities is None else self.entities)

    @property
    def device(self) -> torch.device:
        return self.model.backbone.device if self.entities is None else self.entities.device

    @property
    def streamed(self) -> LmpnnMethod | None:
        """Itself if the device holds only blocks of the table, or if the table is long."""
        return self if self.entities is None or self.num_entities > MANY else None

    @property
    def block_rows(self) -> int:
        """The number of entities in all blocks but the last."""
        in_blocks = self.entities is None
        return self.model.backbone.block_rows if in_blocks else most_rows(self.device)

    def unit(self, ids: Tensor) -> Tensor:
        """The entities of ids [n], of length 1, [n, d]."""
        return F.normalize(self.model.backbone.rows(ids), dim=-1)

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """The entities of length 1 in parts that the device holds: which, and [n, d]."""
        if self.entities is None:
            for span, rows in self.model.backbone.blocks():
                yield span, F.normalize(rows, dim=-1)
            return
        for start in range(0, self.num_entities, self.block_rows):
            part = self.entities[start : start + self.block_rows]
            yield slice(start, start + len(part)), part

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """Embed all queries at once, and score them when asked."""
        embeddings = self.vectors(pattern, constants, relations)
        return lambda rows, out=None: self.score(embeddings[:, rows], out)

    def vectors(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Tensor:
        """`embed`, or an error that says what is wrong."""
        embeddings = self.embed(pattern, constants, relations)
        finite = bool(embeddings.isfinite().all())
        layers = max(len(wiring.layers) for wiring in self._wirings(pattern))
        if layers > DEEP and not (finite and embeddings.any(dim=-1).all()):
            raise QueryError(
                f"the network applies its layer {layers} times to a formula this long, and numbers "
                "grow or shrink beyond what they can hold; ask with --method search (in Python: "
                "method='search'), or shorten the formula"
            )
        if not finite:
            raise RunError("answer embeddings are not finite: the network or the table is broken")
        return embeddings

    @torch.inference_mode()
    def embed(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Tensor:
        """Queries [n, c] and [n, r] -> [disjuncts, n, d], of length 1."""
        wirings = self._wirings(pattern)
        embeddings = [self.model(wiring, constants, relations) for wiring in wirings]
        return F.normalize(torch.stack(embeddings), dim=-1)

    def _wirings(self, pattern: Pattern) -> tuple[Wiring, ...]:
        return wire(pattern, self.union, self.depth_shift, self.constants)

    @torch.inference_mode()
    def score(self, embeddings: Tensor, out: Tensor | None = None) -> Tensor:
        """[disjuncts, n, d] -> [n, E]; the best disjunct of an entity counts."""
        if self.entities is not None:
            return best_cosines(embeddings, self.entities, out)
        scores = embeddings.new_empty(embeddings.shape[1], self.num_entities)
        for span, unit in self.blocks():
            scores[:, span] = best_cosines(embeddings, unit)
        return scores


def best_cosines(embeddings: Tensor, entities: Tensor, out: Tensor | None = None) -> Tensor:
    """[disjuncts, n, d] and [m, d], all of length 1 -> [n, m], of the best disjunct each."""
    first, *others = embeddings
    scores = torch.mm(first, entities.T, out=out)
    if others:
        spare = aligned(len(scores), len(entities), like=scores)[:, : len(entities)]
    for other in others:
        torch.maximum(scores, torch.mm(other, entities.T, out=spare), out=scores)
    return scores


def aligned(rows: int, columns: int, like: Tensor) -> Tensor:
    """Memory for scores: at least as many columns, so that a product writes them fast."""
    return like.new_empty(rows, -(-columns // ALIGNED) * ALIGNED)
