"""The regression finds what made its data."""

import pytest
import torch

from lmpnn_kge.search.logistic import LEAST_PART, Logistic


def claims(count, slopes, intercepts, weight, seed=0):
    """Claims of groups that hold as a known regression says."""
    generator = torch.Generator().manual_seed(seed)
    groups = torch.randint(len(slopes), (count,), generator=generator)
    features = 3 * torch.randn(count, 2, generator=generator, dtype=torch.float64) + 5
    logits = torch.tensor(slopes, dtype=torch.float64)[groups] * features[:, 0]
    logits += torch.tensor(intercepts, dtype=torch.float64)[groups] + weight * features[:, 1]
    holds = torch.rand(count, generator=generator, dtype=torch.float64) < logits.sigmoid()
    return features, groups, holds.double(), torch.ones(count, dtype=torch.float64)


def test_slopes_and_intercepts_of_groups_are_found():
    fitted = Logistic.fit(*claims(50_000, [0.5, 1.0], [-2.0, -6.0], 0.3), 2)
    assert fitted.slopes.tolist() == pytest.approx([0.5, 1.0], abs=0.05)
    assert fitted.intercepts.tolist() == pytest.approx([-2.0, -6.0], abs=0.4)
    assert fitted.weights.tolist() == pytest.approx([0.3], abs=0.03)


def test_a_group_without_data_has_what_is_common():
    data = claims(20_000, [0.5, 0.5], [-2.0, -2.0], 0.3)
    fitted = Logistic.fit(*data, 3)
    assert float(fitted.slopes[2]) == pytest.approx(float(fitted.slopes[:2].mean()), abs=0.05)
    logits = [fitted(data[0][:9], torch.full((9,), group)) for group in (0, 2)]
    assert torch.allclose(*logits, atol=0.3)


def test_no_group_turns_the_order_round():
    fitted = Logistic.fit(*claims(20_000, [1.0, 1.0, -1.0], [0.0, 0.0, 0.0], 0.0), 3)
    assert fitted.slopes[2] > 0
    assert fitted.slopes[2] < LEAST_PART * fitted.slopes[0] * 1.5


def test_a_mass_stands_for_many():
    features, groups, holds, mass = claims(2000, [0.5], [-2.0], 0.3)
    twice = [torch.cat([column, column]) for column in (features, groups, holds, mass)]
    heavy = Logistic.fit(features, groups, holds, 2 * mass, 1)
    repeated = Logistic.fit(*twice, 1)
    assert torch.allclose(heavy.slopes, repeated.slopes, atol=1e-4)
    assert torch.allclose(heavy.weights, repeated.weights, atol=1e-4)


def test_claims_that_never_hold_are_improbable():
    features, groups, holds, mass = claims(500, [0.5], [-2.0], 0.3)
    fitted = Logistic.fit(features, groups, torch.zeros_like(holds), mass, 1)
    assert fitted(features, groups).max() < -2
