"""Scores above and below thresholds are counted exactly, for few thresholds and for many."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.methods import surplus as module
from lmpnn_kge.methods.surplus import surplus


def naive(scores, thresholds):
    above = (scores[:, None] > thresholds[:, :, None]).sum(2)
    below = (scores[:, None] < thresholds[:, :, None]).sum(2)
    return (above - below).float()


@given(
    seed=st.integers(0, 10**6),
    entities=st.integers(1, 60),
    many=st.integers(1, 50),
    spread=st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 1e30]),
    digits=st.sampled_from([0, 1, 6]),
    buckets=st.sampled_from([3, 7, 4096]),
)
@settings(deadline=None, max_examples=200)
def test_ties_gaps_and_removed_answers_are_counted_exactly(
    seed, entities, many, spread, digits, buckets
):
    random = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, entities, generator=random).mul(10).round(decimals=digits) * spread
    columns = torch.randint(entities, (3, many), generator=random)
    thresholds = scores.gather(1, columns)  # each is tied with its own score
    thresholds[:, many // 2 :] += spread * torch.randn(3, many - many // 2, generator=random)
    scores[:, : entities // 4] = -torch.inf
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BUCKETS", buckets)
        assert torch.equal(surplus(scores, thresholds), naive(scores, thresholds))


def test_zeros_of_either_sign_are_tied():
    scores = torch.tensor([[0.0, -0.0, 1.0, -1.0]])
    thresholds = torch.tensor([[0.0, -0.0] * module.FEW])
    assert torch.equal(surplus(scores, thresholds), torch.zeros(1, 2 * module.FEW))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_that_buckets_cannot_hold_are_counted_too(dtype):
    scores = torch.tensor([[1.0, 2.0, 3.0, torch.inf]], dtype=dtype)
    thresholds = torch.full((1, 2 * module.FEW), 2.0, dtype=dtype)
    assert torch.equal(surplus(scores, thresholds), torch.ones(1, 2 * module.FEW, dtype=dtype))


def test_more_scores_than_a_float_counts_are_counted_in_parts(monkeypatch):
    random = torch.Generator().manual_seed(0)
    scores = torch.randint(-3, 4, (5, 1000), generator=random).float()
    thresholds = torch.randint(-3, 4, (5, 30), generator=random).float()
    expected = (scores[:, None] - thresholds[:, :, None]).sign().sum(2)
    monkeypatch.setattr("lmpnn_kge.methods.surplus.EXACT", 64)
    assert torch.equal(surplus(scores, thresholds), expected.long())
