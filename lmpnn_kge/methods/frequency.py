"""The baseline that every method must beat: entities by how often they end the last relation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.graph.answers import spread
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import both_directions
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.methods.method import Scores
from lmpnn_kge.query.patterns import Pattern

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Frequency:
    """A `Method` that knows only how often an entity is the tail of a relation.

    Most entities are never the tail of most relations, so the counts are kept per relation, and
    only those that are not 0.
    """

    num_entities: int
    offsets: Ints  # [2R + 1]: the first tail of each relation
    tails: Tensor  # [m]: entities, by relation
    weights: Tensor  # [m]: log(1 + training edges of the relation that end there)

    streamed = None

    @property
    def device(self) -> torch.device:
        return self.weights.device

    @classmethod
    def of(cls, graph: KnowledgeGraph, backbone: Backbone) -> Frequency:
        """Counts of the training edges, in the rows of a backbone with names."""
        triples = graph.vocabulary.rows_in(backbone.vocabulary).of(graph.triples("train"))
        return cls.count(triples, backbone.num_entities, backbone.num_relations)

    @classmethod
    def count(cls, triples: Ints, num_entities: int, num_relations: int) -> Frequency:
        """Counts of triples [n, 3] in both directions."""
        _, relation, tail = both_directions(triples, num_relations).T
        keys, counts = np.unique(relation * num_entities + tail, return_counts=True)
        return cls(
            num_entities,
            np.searchsorted(keys, np.arange(2 * num_relations + 1) * num_entities),
            torch.from_numpy(keys % num_entities),
            torch.from_numpy(np.log1p(counts.astype(np.float32))),
        )

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """Scores by the positive relations that end at `?`, in the best disjunct for an entity."""
        disjuncts = list(self._last_relations(pattern, relations.numpy()))

        def scores(rows: slice, out: Tensor | None = None) -> Tensor:
            return reduce(torch.maximum, (self._sum(last[rows]) for last in disjuncts))

        return scores

    def _last_relations(self, pattern: Pattern, relations: Ints) -> Iterator[Ints]:
        """For each disjunct, the relations that lead to `?`, [n, k], in ascending order.

        In one order, so that the sums are rounded alike however the atoms are ordered.
        """
        count = len(self.offsets) - 1  # 2R
        for wiring in wire(pattern):
            columns = [
                (relations[:, message.relation] + count // 2 * message.inverse) % count
                for message in wiring.layers[-1].messages
                if message.relation is not None and not message.negated
            ]
            none = np.zeros((len(relations), 0), np.int64)
            yield np.sort(np.stack(columns, axis=1)) if columns else none

    def _sum(self, relations: Ints) -> Tensor:
        """The sum of the weights over relations [n, k], for every entity: [n, E]."""
        total = torch.zeros(len(relations), self.num_entities)
        for column in relations.T:
            first = self.offsets[column]
            rows, positions = spread(first, self.offsets[column + 1] - first)
            total[rows, self.tails[positions]] += self.weights[positions]
        return total
