"""The answers of a hard set, as many for each number of missing edges, from no dominant source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from lmpnn_kge.graph.answers import Answers, Int64s, Mask
from lmpnn_kge.queries.columns import Queries

#: The share of all pairs of query and answer that no relation and no anchor may reach.
SHARE = 0.2

#: The part of all pairs from which on that is checked: of a few pairs, any relation has many.
BEGINNING = 0.1


@dataclass
class Balance:
    """Admits queries one after the other, each with the answers that are still wanted.

    The class of a hard answer is the number of missing edges that it needs. Every class gets as
    many pairs of query and answer, its quota. Until the last class is full, which needs a missing
    edge for every positive atom, each query must have an answer of it.
    """

    classes: int
    quota: int
    num_relations: int
    capped: bool = True  # whether the share of relations and anchors is limited
    pairs: list[int] = field(default_factory=list)  # of each class
    with_relation: Counter[int] = field(default_factory=Counter)  # in either direction
    with_anchor: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.pairs = self.pairs or [0] * self.classes

    @property
    def open(self) -> list[int]:
        """The numbers of missing edges of which pairs are wanted."""
        return [edges for edges, pairs in enumerate(self.pairs, 1) if pairs < self.quota]

    @property
    def total(self) -> int:
        return sum(self.pairs)

    def admit(self, queries: Queries, random: np.random.Generator) -> Queries:
        """The queries that fit; answers that are not wanted are among their easy ones.

        Whether a query fits depends on those before it, so that this is a loop over queries.
        """
        counts = self._counts(queries.hard)
        taken = np.zeros_like(counts)
        columns = counts.tolist(), queries.constants.tolist(), queries.relations.tolist()
        for row, (having, anchors, relations) in enumerate(zip(*columns, strict=True)):
            gain = [min(n, self.quota - has) for n, has in zip(having, self.pairs, strict=True)]
            needs_last = self.pairs[-1] < self.quota
            if (needs_last and not gain[-1]) or not any(gain):
                continue
            if self._count(sum(gain), {r % self.num_relations for r in relations}, set(anchors)):
                self.pairs = [n + has for n, has in zip(gain, self.pairs, strict=True)]
                taken[row] = gain
        chosen = _chosen(queries.hard, taken, random)
        return _with_hard(queries, chosen).select(taken.sum(axis=1) > 0)

    def _counts(self, hard: Answers) -> Int64s:
        """The number of hard answers of each class, [n, classes]."""
        assert hard.costs is not None
        cells = hard.owners * self.classes + hard.costs - 1
        return np.bincount(cells, minlength=len(hard) * self.classes).reshape(-1, self.classes)

    def _count(self, gain: int, relations: Collection[int], anchors: Collection[int]) -> bool:
        """Count the pairs of a query, unless its relations or anchors would have too many."""
        total = self.total + gain
        if self.capped and total > BEGINNING * self.quota * self.classes:
            limit = SHARE * total
            if any(self.with_relation[relation] + gain >= limit for relation in relations):
                return False
            if any(self.with_anchor[anchor] + gain >= limit for anchor in anchors):
                return False
        for relation in relations:
            self.with_relation[relation] += gain
        for anchor in anchors:
            self.with_anchor[anchor] += gain
        return True


def _chosen(hard: Answers, taken: Int64s, random: np.random.Generator) -> Mask:
    """Random answers of each query: as many of each class as taken [n, classes] says."""
    assert hard.costs is not None
    cells = hard.owners * taken.shape[1] + hard.costs - 1
    order = np.lexsort((random.random(len(cells)), cells))
    ordered = cells[order]
    place = np.arange(len(cells)) - np.searchsorted(ordered, ordered)  # within the cell
    chosen = np.zeros(len(cells), bool)
    chosen[order] = place < taken.ravel()[ordered]
    return chosen


def _with_hard(queries: Queries, chosen: Mask) -> Queries:
    """The queries with only some of their hard answers; the others become easy ones."""
    easy, rest = queries.easy, queries.hard.only(~chosen)
    observed = Answers(easy.offsets, easy.values, np.zeros(len(easy.values), np.int32))
    return Queries(
        queries.pattern,
        queries.constants,
        queries.relations,
        observed.merged(rest),
        queries.hard.only(chosen),
    )
