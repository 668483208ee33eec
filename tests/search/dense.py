"""The truth of edges from a table, for tests that work out by hand what search must find."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.search.facts import Facts


@dataclass(eq=False)
class DenseTruth:
    """A `Truth` that is a table; an edge and its inverse are equally true."""

    table: Tensor  # [2R, E, E], without logarithm
    facts: Facts
    certain: bool = True

    @classmethod
    def random(cls, entities: int, relations: int, triples=(), seed: int = 0) -> "DenseTruth":
        """Random truths, 1 for the triples."""
        random = torch.Generator().manual_seed(seed)
        table = torch.rand(relations, entities, entities, generator=random, dtype=torch.float64)
        for head, relation, tail in triples:
            table[relation, head, tail] = 1
        known = np.array(sorted(triples), np.int64).reshape(-1, 3)
        return cls(torch.cat([table, table.mT]), Facts.of(known, entities, relations))

    @property
    def device(self):
        return self.table.device

    def rows(self, heads, relations):
        return self.table[relations, heads].log().float()

    def chances(self, heads, relations):
        return self.table[relations, heads].float()
