"""Messages, scores and truth values: derived here once, for every backbone.

The four messages ρ follow from f alone, because relation r + R is the inverse r⁻¹ of r:

    ρ(h, r, h2t, 0) =  f(h, r)        ρ(t, r, t2h, 0) =  f(t, r⁻¹)
    ρ(h, r, h2t, 1) = −f(h, r)        ρ(t, r, t2h, 1) = −f(t, r⁻¹)

Scores follow from f and the type of the score:

    Type 1, inner product   φ(h, r, t) = ⟨f(h, r), t⟩
    Type 2, distance        φ(h, r, t) = −‖f(h, r) − t‖ in the model's own norm
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from lmpnn_kge.backbones.embedding import Embedding
from lmpnn_kge.backbones.kernels import all_pairs

if TYPE_CHECKING:
    from torch import Tensor

    from lmpnn_kge.backbones.embedding import Ids

#: The equality relation, f(a, =) = a; negated it is ≠.
EQUAL: Literal["="] = "="


class ScoreType(Enum):
    """The comparison of f(h, r) with a tail (the paper's Type 1 and Type 2)."""

    INNER_PRODUCT = "inner product"
    DISTANCE = "distance"


class Messages(Embedding, ABC):
    """What follows from a model's f, which `Backbone` documents."""

    score_type: ClassVar[ScoreType]

    @abstractmethod
    def forward(self, heads: Tensor, relations: Tensor) -> Tensor: ...

    @abstractmethod
    def project(self, tails: Tensor, relations: Tensor) -> Tensor: ...

    @abstractmethod
    def distance(self, a: Tensor, b: Tensor) -> Tensor: ...

    @property
    @abstractmethod
    def projects(self) -> bool:
        """Whether tails are seen through their relation."""

    def inverse(self, relations: Ids) -> Tensor:
        """Ids of the inverse relations."""
        return (self._ids(relations) + self.num_relations) % (2 * self.num_relations)

    def message(
        self,
        z: Tensor,
        relation: Ids | Literal["="],
        *,
        inverse: bool = False,
        negated: bool = False,
    ) -> Tensor:
        """Message ρ that a node in state z [n, d] sends over a (negated) atom, [n, d].

        relation is one id for all rows or one id per row. If inverse is true, z is the tail of the
        atom and the message goes to its head.
        """
        if isinstance(relation, str) and relation == EQUAL:
            estimate = z
        else:
            ids = self.inverse(relation) if inverse else self._ids(relation)
            estimate = self.forward(z, ids.expand(len(z)))
        return -estimate if negated else estimate

    def score(self, heads: Tensor, relation: Ids | Literal["="], tails: Tensor) -> Tensor:
        """Score φ(h, r, t) of embeddings [n, d], not of ids -> [n]."""
        estimates = self.message(heads, relation)
        return self.score_pairs(estimates, tails, None if isinstance(relation, str) else relation)

    def score_pairs(self, estimates: Tensor, tails: Tensor, relations: Ids | None = None) -> Tensor:
        """Score φ of each estimate [n, d] against the tail in the same row -> [n].

        relations are those that the estimates were made with, None for equality: a distance may
        depend on them.
        """
        if self.score_type is ScoreType.INNER_PRODUCT:
            return (estimates * tails).sum(-1)
        if relations is not None:
            tails = self.project(tails, self._ids(relations).expand(len(tails)))
        return -self.distance(estimates, tails)

    def score_entities(self, estimates: Tensor, relations: Ids | None = None) -> Tensor:
        """Score φ of each estimate [n, d] against every entity -> [n, E].

        relations has the same meaning as in `score_pairs`.
        """
        if self.table_memory is None:
            return self._score_block(estimates, relations, self.entities)
        scores = estimates.new_empty(len(estimates), self.num_entities)
        for span, tails in self.blocks():
            scores[:, span] = self._score_block(estimates, relations, tails)
        return scores

    def _score_block(self, estimates: Tensor, relations: Ids | None, tails: Tensor) -> Tensor:
        """Score φ of each estimate [n, d] against tails [m, d] -> [n, m]."""
        if self.score_type is ScoreType.INNER_PRODUCT:
            return estimates @ tails.T
        if relations is None or not self.projects:
            return -all_pairs(self.distance, estimates, tails)
        ids = self._ids(relations).expand(len(estimates))
        scores = estimates.new_empty(len(ids), len(tails))
        for relation in ids.unique():  # rows of one relation share the projected entities
            rows = ids == relation
            distance = partial(self._projected_distance, relation)
            scores[rows] = -all_pairs(distance, estimates[rows], tails)
        return scores

    def _projected_distance(self, relation: Tensor, estimates: Tensor, tails: Tensor) -> Tensor:
        return self.distance(estimates, self.project(tails, relation))

    def score_tails(self, heads: Ids, relations: Ids) -> Tensor:
        """Score φ(h, r, ·) of head ids [n] and relation ids [n] against every entity -> [n, E]."""
        estimates = self.message(self.rows(heads), relations)
        return self.score_entities(estimates, relations)

    def score_heads(self, relations: Ids, tails: Ids) -> Tensor:
        """Score φ(·, r, t) of relation ids [n] and tail ids [n] against every entity -> [n, E]."""
        return self.score_tails(tails, self.inverse(relations))

    @staticmethod
    def truth(scores: Tensor, *, scale: float = 1.0, shift: float = 0.0) -> Tensor:
        """Truth value ψ = σ(scale · φ + shift); the margin γ of a distance is its shift."""
        return (scale * scores + shift).sigmoid()

    def _ids(self, ids: Ids) -> Tensor:
        import torch

        return torch.as_tensor(ids, dtype=torch.int64, device=self.device)
