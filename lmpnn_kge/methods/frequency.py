"""What a method must beat: entities by how often they are at the end of the last relation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.names import rows_of
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.methods.rank import Scores
from lmpnn_kge.query.patterns import Pattern


@dataclass(frozen=True)
class Frequency:
    """A `Method` that knows only how often an entity is the tail of a relation."""

    entities: Tensor  # [E, 2R]: log(1 + training edges of relation r that end at e)

    @classmethod
    def of(cls, graph: KnowledgeGraph, backbone: Backbone) -> Frequency:
        """Counted on the training edges, in the numbers of a backbone with names."""
        assert backbone.entity_ids is not None
        assert backbone.relation_ids is not None
        entities = rows_of(graph.entity_ids, backbone.entity_ids)
        relations = rows_of(graph.relation_ids, backbone.relation_ids)
        s, p, o = graph.splits["train"].T
        counts = np.zeros((backbone.num_entities, 2 * backbone.num_relations), np.float32)
        np.add.at(counts, (entities[o], relations[p]), 1)
        np.add.at(counts, (entities[s], relations[p] + backbone.num_relations), 1)
        return cls(torch.from_numpy(np.log1p(counts)))

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """By the relations that end at the free variable, the best disjunct counting."""
        width = self.entities.shape[1]
        found = []
        for wiring in wire(pattern):
            last = [
                (relations[:, m.relation] + (width // 2 if m.inverse else 0)) % width
                for m in wiring.layers[-1].messages
                if m.relation is not None and not m.negated
            ]
            none = relations.new_zeros(len(constants), width)
            found.append(sum((F.one_hot(ids, width) for ids in last), start=none))
        ends = torch.stack(found).to(self.entities.dtype)  # [disjuncts, n, 2R]
        return lambda rows, out=None: torch.amax(ends[:, rows] @ self.entities.T, 0, out=out)
