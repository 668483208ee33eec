"""The truth of edges: an embedding's scores as numbers between 0 and 1.

    A_r[h, t] = σ(a · log softmax_t(β φ(h, r, t)) + b
                  + c · log max(1, deg(h, r)) + p · log(1 + deg(t, r⁻¹)))

deg(h, r) is the number of known tails: if many are known, many others are missing. A known edge has
the truth 1, unless facts are ignored. The weights a, b, c and p may differ between relations. They
are fitted on queries. They are not the values that make single edges likely: an intersection wants
flatter truths than one edge.

A row A_r[h, ·] costs a pass over all entities. Rows are computed when a query needs them, and the
best tails of a row are kept for the next query.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.device import moved_fields
from lmpnn_kge.search.facts import Facts

#: Scores that are in memory at once.
CHUNK = 2**22

#: Plausible tails that a relation was not seen with; they are found with the scores of half of
#: SAMPLED heads, with β multiplied by SHARPER. Of the BEST unknown tails of the other half, this
#: part must be plausible.
UNSEEN, SAMPLED, SHARPER, BEST, COVERED = 512, 32, 2.0, 10, 0.9

#: Rows whose best tails are kept: 270 MB at 128 tails each.
ROWS = 2**18


class Truth(Protocol):
    """What search needs to know of edges. Truths are logarithms, if not said otherwise."""

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

    def best(self, heads: Tensor, relations: Tensor) -> tuple[Tensor, Tensor]:
        """The best tails that are not certain and their truth (no logarithm), [m, T] each."""


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


class RowCache:
    """The best tails of rows, found by key. When it is full, it starts again.

    It takes 8 · width bytes for each row. Threads that share it hold its lock.
    """

    def __init__(self, width: int, capacity: int, device: torch.device):
        self.lock = threading.Lock()
        self.width, self.capacity = width, capacity
        self.tails = torch.empty(0, width, dtype=torch.int32, device=device)
        self.truths = torch.empty(0, width, device=device)
        self.keys = torch.empty(0, dtype=torch.int64, device=device)  # ascending
        self.rows = self.keys  # the row of each key

    def missing(self, keys: Tensor) -> Tensor:
        """Those of distinct keys that must be added; room is made for all of them."""
        missing = keys[~self._known(keys)]
        if len(self.keys) + len(missing) > self.capacity:
            self.keys = self.rows = keys[:0]
            missing = keys
        self._grow(len(self.keys) + len(missing))
        return missing

    def add(self, keys: Tensor, tails: Tensor, truths: Tensor) -> None:
        """Keep the best tails of new keys."""
        first, last = len(self.keys), len(self.keys) + len(keys)
        self.tails[first:last] = tails
        self.truths[first:last] = truths
        rows = torch.cat([self.rows, torch.arange(first, last, device=keys.device)])
        self.keys, order = torch.cat([self.keys, keys]).sort()
        self.rows = rows[order]

    def find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """The tails and truths of keys that have been added."""
        rows = self.rows[torch.searchsorted(self.keys, keys)]
        return self.tails[rows], self.truths[rows]

    def _known(self, keys: Tensor) -> Tensor:
        if not len(self.keys):
            return torch.zeros_like(keys, dtype=torch.bool)
        position = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        return self.keys[position] == keys

    def _grow(self, rows: int) -> None:
        """Make room for rows, more than asked so that most calls copy nothing."""
        if rows > len(self.tails):
            more = max(rows, min(2 * len(self.tails), self.capacity))
            for name in ("tails", "truths"):
                old = getattr(self, name)
                new = old.new_empty(more, self.width)
                new[: len(old)] = old
                setattr(self, name, new)


@dataclass(frozen=True, eq=False)
class EdgeTruth:
    """The truth of edges by the scores of a backbone."""

    backbone: Backbone
    facts: Facts
    weights: Weights
    certain: bool
    kept: int  # T
    cache: RowCache
    _plausible: dict[int, Tensor] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, backbone: Backbone, facts: Facts, weights: Weights, *, certain: bool, kept: int
    ) -> EdgeTruth:
        """The truth of edges, with room for the rows of `ROWS` heads and relations."""
        cache = RowCache(min(kept, facts.num_entities), ROWS, facts.keys.device)
        return cls(backbone, facts, weights, certain, kept, cache)

    @property
    def device(self) -> torch.device:
        return self.backbone.entities.device

    def rows(self, heads: Tensor, relations: Tensor) -> Tensor:
        keys = self.facts.keys_of(heads, relations)
        distinct, positions = keys.unique(return_inverse=True)
        if 2 * len(distinct) > len(keys):  # a copy of each row would take longer than some twice
            distinct, positions = keys, None
        truths = F.logsigmoid(self._logits(distinct))
        if self.certain:
            truths[self.facts.tails_of(distinct)] = 0.0
        return truths if positions is None else truths[positions]

    def best(self, heads: Tensor, relations: Tensor) -> tuple[Tensor, Tensor]:
        keys = self.facts.keys_of(heads, relations)
        distinct = keys.unique()
        while True:
            with self.cache.lock:
                missing = self.cache.missing(distinct)
                if not len(missing):
                    return self.cache.find(keys)
            rows = self._best(missing)
            with self.cache.lock:  # other threads may have added some of them or begun again
                left = self.cache.missing(distinct)
                new = torch.isin(missing, left)
                self.cache.add(missing[new], *(column[new] for column in rows))
                if int(new.sum()) == len(left):
                    return self.cache.find(keys)

    def _best(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """The best tails of each key and their truth, among the plausible tails of its relation."""
        tails = torch.zeros(len(keys), self.cache.width, dtype=torch.int32, device=keys.device)
        truths = torch.zeros(len(keys), self.cache.width, device=keys.device)
        relations, order = (keys % (2 * self.facts.num_relations)).sort(stable=True)
        distinct, counts = relations.unique_consecutive(return_counts=True)
        for relation, rows in zip(distinct.tolist(), order.split(counts.tolist()), strict=True):
            among = self.plausible(relation)
            for part in rows.split(max(1, CHUNK // len(among))):
                logits = self._logits(keys[part], among)
                if self.certain:
                    owners, known = self.facts.tails_of(keys[part])
                    place = torch.searchsorted(among, known)
                    logits[owners, place] = -torch.inf  # known tails are plausible
                best = logits.topk(min(self.cache.width, len(among)), sorted=False)
                width = best.indices.shape[1]
                tails[part, :width] = among[best.indices].int()
                truths[part, :width] = best.values.sigmoid()
        return tails, truths

    def plausible(self, relation: int) -> Tensor:
        """The entities that a message over a relation may reach, in ascending order.

        These are the known tails of the relation, and others that score best with some of its known
        heads, if these are enough for other heads as well. If not, all entities are plausible.
        """
        if relation not in self._plausible:
            self._plausible[relation] = self._find_plausible(relation)
        return self._plausible[relation]

    @torch.no_grad()
    def _find_plausible(self, relation: int) -> Tensor:
        facts = self.facts
        everything = torch.arange(facts.num_entities, device=self.device)
        heads = facts.heads(relation)
        heads = heads[:: max(1, len(heads) // SAMPLED)][:SAMPLED]
        if self.kept >= facts.num_entities or len(heads) < SAMPLED:
            return everything
        keys = facts.keys_of(heads, torch.full_like(heads, relation))
        scores = self.backbone.score_tails(heads, torch.full_like(heads, relation))
        scores[facts.tails_of(keys)] = -torch.inf
        some, others = scores.split(SAMPLED // 2)
        seen = facts.heads((relation + facts.num_relations) % (2 * facts.num_relations))
        reached = (SHARPER * self.weights.beta * some).softmax(1).sum(0)
        reached[seen] = torch.inf
        chosen = reached.topk(min(facts.num_entities, len(seen) + UNSEEN), sorted=False).indices
        best = others.topk(min(BEST, facts.num_entities)).indices
        if torch.isin(best, chosen).float().mean() < COVERED:
            return everything
        return chosen.sort().values

    def _logits(self, keys: Tensor, among: Tensor | None = None) -> Tensor:
        """The logits of the truth of rows, [m, E], as if no edge were known.

        With among, only for the tails of these ids; the keys then have one relation.
        """
        width = 2 * self.facts.num_relations
        relations = keys % width
        slope, bias, fan, popularity = self.weights.relations[relations].T
        scores = self.weights.beta * self.backbone.score_tails(keys // width, relations, among)
        shift = bias + fan * self.facts.count(keys).clamp(min=1).log()
        logits = scores * slope[:, None] + (shift - slope * scores.logsumexp(1))[:, None]
        if self.weights.uses_popularity:
            if among is None:
                popular = self.facts.tail_counts(relations)
            else:
                popular = self.facts.tail_counts(relations[:1])[:, among]
            logits = logits + popularity[:, None] * popular.log1p()
        return logits
