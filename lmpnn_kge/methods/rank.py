"""How well queries are answered: filtered ranks of their hard answers, by pattern.

The rank of a hard answer is 1 + the entities that score strictly better and are no answers + half
of those that score the same. Metrics are averaged over a query's hard answers, then over queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.errors import RunError
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import Constants, Union, wire
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.settings import Config

#: Queries that are embedded at once.
BATCH = 1024

#: Scores that are held at once, and how many of them are compared at once: a cache's worth.
CHUNK_SCORES, CACHE_SCORES = 2**22, 2**20

HITS = (1, 3, 10)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Metrics:
    """Averages over the queries of one pattern."""

    mrr: float
    hits: Mapping[int, float]
    queries: int
    by_missing: Mapping[int, tuple[float, int]]  # edges missing -> MRR, hard answers

    @classmethod
    def of(cls, ranks: Floats, hard: Answers) -> Metrics:
        """From the rank of every hard answer."""
        by_missing = {}
        for cost in () if hard.costs is None else np.unique(hard.costs).tolist():
            chosen = hard.costs == cost
            mrr = _average(1 / ranks[chosen], hard.only(chosen))
            by_missing[cost] = mrr, int(chosen.sum())
        return cls(
            _average(1 / ranks, hard),
            {k: _average(ranks <= k, hard) for k in HITS},
            int((hard.counts > 0).sum()),
            by_missing,
        )


def _average(values: npt.NDArray[Any], answers: Answers) -> float:
    """Over the answers of each query that has any, then over those queries."""
    counts = answers.counts
    sums = np.bincount(answers.owners, values, minlength=len(answers))
    having = counts > 0
    return float((sums[having] / counts[having]).mean()) if having.any() else float("nan")


class Scores(Protocol):
    """The scores of some of the queries of a batch."""

    def __call__(self, rows: slice, out: Tensor | None = None) -> Tensor:
        """[n, E], into out where that can be."""


class Method(Protocol):
    """A way to answer queries."""

    @property
    def entities(self) -> Tensor:
        """[E, ·], on the device that it computes on."""

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """Of queries [n, c] and [n, r] against every entity."""


@dataclass(frozen=True)
class Scorer:
    """LMPNN as a method: the cosine of an answer embedding and an entity."""

    model: Lmpnn
    entities: Tensor  # [E, d], of length 1
    union: Union
    depth_shift: int = 0
    constants: Constants = "updated"

    @classmethod
    def of(cls, model: Lmpnn, config: Config) -> Scorer:
        """A network with the settings it was trained with."""
        unit = F.normalize(model.backbone.entities, dim=-1)
        return cls(model, unit, config.union, config.depth_shift, config.constants)

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """By their embeddings, which are made at once."""
        embeddings = self.embed(pattern, constants, relations)
        if not embeddings.isfinite().all():
            raise RunError("answer embeddings are not finite: the network or the table is broken")
        return lambda rows, out=None: self.score(embeddings[:, rows], out)

    @torch.inference_mode()
    def embed(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Tensor:
        """Queries [n, c] and [n, r] -> [disjuncts, n, d], of length 1."""
        wirings = wire(pattern, self.union, self.depth_shift, self.constants)
        found = [self.model(wiring, constants, relations) for wiring in wirings]
        return F.normalize(torch.stack(found), dim=-1)

    @torch.inference_mode()
    def score(self, embeddings: Tensor, out: Tensor | None = None) -> Tensor:
        """[disjuncts, n, d] -> [n, E]; an entity counts by its best disjunct."""
        first, *others = embeddings
        scores = torch.mm(first, self.entities.T, out=out)
        for other in others:
            torch.maximum(scores, other @ self.entities.T, out=scores)
        return scores


def evaluate(
    method: Method,
    queries: Mapping[str, Queries],
    progress: Callable[[str, int], object] = lambda name, done: None,
) -> dict[str, Metrics]:
    """The metrics of every pattern with hard answers; progress hears how many are done."""
    results = {}
    for name, found in queries.items():
        if len(found.hard.values):
            results[name] = Metrics.of(rank_queries(method, found, name, progress), found.hard)
    return results


def rank_queries(
    method: Method,
    queries: Queries,
    name: str = "",
    progress: Callable[[str, int], object] = lambda name, done: None,
) -> Floats:
    """The rank of every hard answer, in their order."""
    device = method.entities.device
    # Queries with equally many hard answers stand together, so that little is padded.
    counts = queries.hard.counts
    order = np.argsort(counts, kind="stable")[np.count_nonzero(counts == 0) :]
    ranks = np.empty(len(queries.hard.values))
    size = min(BATCH, max(1, CHUNK_SCORES // len(method.entities)))
    buffer = method.entities.new_empty(size, len(method.entities))
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        constants, relations = (
            torch.from_numpy(columns[rows].astype(np.int64)).to(device)
            for columns in (queries.constants, queries.relations)
        )
        scores_of = method.answer(queries.pattern, constants, relations)
        for first in range(0, len(rows), size):
            chosen = rows[first : first + size]
            scores = scores_of(slice(first, first + size), buffer[: len(chosen)])
            places, found = _rank(scores, queries, chosen)
            ranks[places] = found
        progress(name, start + len(rows))
    return ranks


@torch.inference_mode()
def _rank(scores: Tensor, queries: Queries, rows: npt.NDArray[np.int64]) -> tuple[Any, Any]:
    """Where the hard answers of some queries stand in their column, and their ranks."""
    owners, places = queries.hard.places(rows)
    easy_owners, easy_places = queries.easy.places(rows)
    hard = queries.hard.values[places].astype(np.int64)
    easy = queries.easy.values[easy_places].astype(np.int64)
    column = places - queries.hard.offsets[rows][owners]  # first, second … hard answer of a query
    device = scores.device
    owners_, column_, hard_, easy_owners_, easy_ = (
        torch.from_numpy(array).to(device) for array in (owners, column, hard, easy_owners, easy)
    )
    thresholds = scores.new_zeros(len(rows), int(column.max()) + 1)
    thresholds[owners_, column_] = scores[owners_, hard_]
    scores[owners_, hard_] = -torch.inf
    scores[easy_owners_, easy_] = -torch.inf
    size = max(1, CACHE_SCORES // scores.shape[1])
    surplus = torch.cat([
        _surplus(*block)
        for block in zip(scores.split(size), thresholds.split(size), strict=True)
    ])  # fmt: skip
    found = surplus[owners_, column_].cpu().double().numpy()  # which not every device has
    return places, 1 + (scores.shape[1] + found) / 2  # what is above and half of the ties


def _surplus(scores: Tensor, thresholds: Tensor) -> Tensor:
    """How many more of scores [n, E] are above thresholds [n, k] than below: Σ sign(s − t), [n, k].

    As each is above, below or tied, (E + Σ) / 2 of them are above, ties counted as halves.
    """
    difference = torch.empty_like(scores)
    signs = [
        torch.sub(scores, threshold[:, None], out=difference).sign_().sum(1)
        for threshold in thresholds.unbind(1)
    ]
    return torch.stack(signs, dim=1)


def capped(queries: Mapping[str, Queries], most: int) -> dict[str, Queries]:
    """At most so many queries of each pattern, evenly spread over those there are."""

    def some(found: Queries) -> Queries:
        chosen = np.zeros(len(found), bool)
        chosen[np.linspace(0, len(found) - 1, most).astype(np.int64)] = True
        return found.select(chosen)

    return {name: found if len(found) <= most else some(found) for name, found in queries.items()}
