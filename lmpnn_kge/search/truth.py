"""The truth of edges: an embedding's scores as numbers between 0 and 1.

    A_r[h, t] = σ(a · log softmax_t(β φ(h, r, t)) + b
                  + c · log max(1, deg(h, r)) + p · log(1 + deg(t, r⁻¹)))

deg(h, r) is the number of known tails: if many are known, many others are missing. This is at most
0.9999. A known edge has the truth 1, unless facts are ignored. The weights a, b, c and p may differ
between relations. They are fitted on queries. They are not the values that make single edges
likely: an intersection wants flatter truths than one edge.

A row A_r[h, ·] costs a pass over all entities, so rows are computed only when a query needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.device import moved_fields
from lmpnn_kge.search.facts import Facts

#: The largest logit of an edge that is not known. It is not certain: its truth is below 0.9999.
ALMOST_CERTAIN = 9.2


class Truth(Protocol):
    """What search needs to know of edges."""

    @property
    def facts(self) -> Facts:
        """The edges of the training graph."""

    @property
    def certain(self) -> bool:
        """Whether these have the truth 1."""

    @property
    def device(self) -> torch.device: ...

    def rows(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The log truth of edges from heads [m] by relations [m] to every entity, [m, E]."""

    def chances(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The same without logarithm. The caller may overwrite it."""


@dataclass(frozen=True, eq=False)
class Weights:
    """β, and a, b, c and p of every relation, [2R, 4]."""

    beta: Tensor  # []
    relations: Tensor

    @classmethod
    def uniform(cls, beta: float, bias: float, num_relations: int) -> Weights:
        """The same for all relations: a = c = 1 and p = 0."""
        row = torch.tensor([1.0, bias, 1.0, 0.0])
        return cls(torch.tensor(beta), row.repeat(2 * num_relations, 1))

    def to(self, device: torch.device) -> Weights:
        return replace(self, **moved_fields(self, device))

    @cached_property
    def uses_popularity(self) -> bool:
        """Whether p matters: it is not 0, or about to be learnt."""
        return self.relations.requires_grad or bool(self.relations[:, 3].any())


@dataclass(frozen=True, eq=False)
class EdgeTruth:
    """The truth of edges by the scores of a backbone."""

    backbone: Backbone
    facts: Facts
    weights: Weights
    certain: bool

    @property
    def device(self) -> torch.device:
        return self.backbone.device

    def rows(self, heads: Tensor, relations: Tensor) -> Tensor:
        return self._rows(heads, relations, F.logsigmoid, 0.0)

    @torch.no_grad()
    def chances(self, heads: Tensor, relations: Tensor) -> Tensor:
        return self._rows(heads, relations, torch.sigmoid_, 1.0)

    def _rows(
        self, heads: Tensor, relations: Tensor, truth_of: Callable[[Tensor], Tensor], known: float
    ) -> Tensor:
        keys = self.facts.keys_of(heads, relations)
        distinct, positions = keys.unique(return_inverse=True)
        if 2 * len(distinct) > len(keys):  # a copy of each row would take longer than some twice
            distinct, positions = keys, None
        truths = truth_of(self._logits(distinct).clamp_(max=ALMOST_CERTAIN))
        if self.certain:
            truths[self.facts.tails_of(distinct)] = known
        return truths if positions is None else truths[positions]

    def _logits(self, keys: Tensor) -> Tensor:
        """The logits of the truth of rows, [m, E], as if no edge were known."""
        width = 2 * self.facts.num_relations
        relations = keys % width
        slope, bias, fan, _ = self.weights.relations[relations].T
        scores = self.weights.beta * self.backbone.score_tails(keys // width, relations)
        shift = bias + fan * self.facts.count(keys).clamp(min=1).log()
        shift = shift - slope * scores.logsumexp(1)
        logits = torch.addcmul(shift[:, None], slope[:, None], scores)
        return logits + self._popularity(relations) if self.weights.uses_popularity else logits

    def _popularity(self, relations: Tensor) -> Tensor:
        """p · log(1 + deg) of every entity, for relations [m]: [m, E]."""
        distinct, positions = relations.unique(return_inverse=True)
        weight = self.weights.relations[distinct, 3]
        return (weight[:, None] * self.facts.tail_counts(distinct).log1p())[positions]
