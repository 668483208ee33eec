"""The best entities from blocks: exactly those by the scores of all, ties included."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge.errors import TimeLimitError
from lmpnn_kge.methods.vectors import Vectors
from lmpnn_kge.runs.best import best_in_blocks, best_rows
from lmpnn_kge.work.deadline import time_limit


@dataclass(frozen=True)
class Table:
    """Entities in blocks of some rows."""

    entities: torch.Tensor  # [E, d]
    size: int

    def blocks(self):
        for start in range(0, len(self.entities), self.size):
            part = self.entities[start : start + self.size]
            yield slice(start, start + len(part)), part


def whole_numbers(*shape, seed=0):
    """Few different ones, so that many scores are equal, and none is rounded."""
    return torch.randint(-1, 2, shape, generator=torch.Generator().manual_seed(seed)).float()


@given(st.integers(1, 40), st.integers(1, 45), st.integers(0, 45), st.integers(0, 2**31))
def test_blocks_of_any_size_give_the_best_of_the_whole_table(entities, size, k, seed):
    table, queries = whole_numbers(entities, 3, seed=seed), whole_numbers(2, 4, 3, seed=seed + 1)
    scores = torch.maximum(*(queries @ table.T))  # [4, E]
    omitted, unfit = whole_numbers(2, 4, entities, seed=seed + 2) > 0
    for fitting in (None, ~unfit):
        best = best_in_blocks(Table(table, size), Vectors.of([queries]), omitted, fitting, k)
        expected = best_rows(scores, omitted, fitting, k)
        for query in range(4):
            assert best.rows[query].tolist() == expected[query].tolist()
            assert torch.equal(best.scores[query], scores[query, expected[query]])


def test_the_time_limit_holds_within_a_pass():
    table, nothing = Table(whole_numbers(20, 3), 2), torch.zeros(1, 20, dtype=torch.bool)
    vectors = Vectors.of([whole_numbers(1, 1, 3)])
    with time_limit(1e-9), pytest.raises(TimeLimitError):
        best_in_blocks(table, vectors, nothing, None, 3)
