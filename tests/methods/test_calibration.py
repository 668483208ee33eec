"""Scores become probabilities that mean something, and damaged files become one line."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge.errors import CalibrationError
from lmpnn_kge.methods.calibration import Bin, Calibration, Reliability

CLAIMS = st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=1, max_size=60)


def drawn(count: int, seed: int = 0):
    """Scores, and whether claims hold that are as probable as the square of the score."""
    random = np.random.default_rng(seed)
    scores = random.random(count)
    return scores, random.random(count) < scores**2


def test_probabilities_are_the_shares_that_hold():
    calibration = Calibration.fit(*drawn(100_000))
    scores = torch.linspace(0.1, 0.9, 9)
    assert calibration(scores).tolist() == pytest.approx((scores**2).tolist(), abs=0.03)


def test_what_is_fitted_on_one_sample_is_reliable_on_another():
    calibration = Calibration.fit(*drawn(20_000))
    scores, holds = drawn(20_000, seed=1)
    calibrated = Reliability.measure(calibration(torch.from_numpy(scores)), holds)
    assert calibrated.error < 0.02
    assert Reliability.measure(scores, holds).error > 0.1


@given(CLAIMS, st.integers(1, 10))
def test_a_higher_score_is_never_less_probable(claims, least):
    scores, holds = zip(*claims, strict=True)
    calibration = Calibration.fit(scores, holds, least=least)
    probabilities = calibration(torch.arange(-6.0, 6.0, 0.25))
    assert (probabilities.diff() >= -1e-6).all()
    assert 0 < probabilities.min() <= probabilities.max() < 1
    assert Calibration.from_json(calibration.to_json(), "file") == calibration


@given(CLAIMS)
def test_the_mean_probability_of_steps_is_the_share_that_holds(claims):
    """Nothing is lost by pooling: a single step has the share of all, drawn to itself."""
    scores, holds = zip(*claims, strict=True)
    calibration = Calibration.fit(scores, holds, least=len(scores))
    prior = (sum(holds) + 0.5) / (len(holds) + 1)
    assert calibration.scores == (pytest.approx(np.mean(scores)),)
    assert calibration.probabilities == (pytest.approx((sum(holds) + prior) / (len(holds) + 1)),)


def test_each_step_rests_on_enough_claims_and_equal_scores_share_one():
    scores = [0] * 5 + [1] * 150 + list(range(2, 97))
    holds = [False] * 5 + [False] * 150 + [True] * 95
    assert Calibration.fit(scores, holds, least=100).scores == (pytest.approx(np.mean(scores)),)
    assert len(Calibration.fit(scores, holds, least=50).scores) == 2


def test_a_weight_stands_for_many_claims():
    repeated = Calibration.fit([0, 0, 0, 1], [0, 1, 1, 1], least=1)
    weighted = Calibration.fit([0, 0, 1], [0, 1, 1], [1, 2, 1], least=1)
    assert repeated == weighted


def test_constant_scores_have_one_probability():
    calibration = Calibration.fit([3.0] * 400, [True] * 100 + [False] * 300)
    assert calibration(torch.tensor([[-1e9, 3.0], [torch.inf, 4.0]])).flatten().tolist() == (
        pytest.approx([0.25] * 4, abs=0.01)
    )


def test_points_closer_than_the_precision_of_scores_do_no_harm():
    calibration = Calibration((1.0, 1.0 + 1e-12, 2.0), (0.1, 0.2, 0.9))
    assert calibration(torch.tensor([0.0, 1.0, 1.5, 3.0])).isfinite().all()


def test_what_cannot_be_compared_is_reported():
    with pytest.raises(CalibrationError, match="nothing"):
        Calibration.fit([], [])
    with pytest.raises(CalibrationError, match="finite"):
        Calibration.fit([math.nan], [True])
    with pytest.raises(CalibrationError, match="between 0 and 1"):
        Reliability.measure([1.5], [True])


def test_the_error_is_the_mean_distance_by_bins():
    reliability = Reliability.measure([0.05, 0.05, 0.95, 1.0], [0, 0, 1, 0])
    assert reliability.bins == (
        Bin(pytest.approx(0.05), 0.0, 2.0),
        Bin(pytest.approx(0.975), 0.5, 2.0),
    )
    assert reliability.error == pytest.approx((0.05 + 0.475) / 2)
    assert str(reliability) == "expected calibration error 0.2625; 25.0 % of 4 hold"


def test_reliability_survives_json():
    reliability = Reliability.measure(*drawn(1000))
    assert Reliability.from_json(json.loads(json.dumps(reliability.to_json())), "x") == reliability


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"scores": [1.0], "probabilities": [0.5], "more": 1},
        {"scores": [], "probabilities": []},
        {"scores": [1.0, 2.0], "probabilities": [0.5]},
        {"scores": [2.0, 1.0], "probabilities": [0.1, 0.2]},
        {"scores": [1.0, 2.0], "probabilities": [0.2, 0.1]},
        {"scores": [1.0, 2.0], "probabilities": [0.1, 1.1]},
        {"scores": [1.0, math.inf], "probabilities": [0.1, 0.2]},
        {"scores": [1.0, True], "probabilities": [0.1, 0.2]},
        {"scores": "12", "probabilities": [0.1, 0.2]},
    ],
)
def test_a_damaged_calibration_is_one_line_that_names_its_file(content):
    with pytest.raises(CalibrationError, match=r"^some\.json: .+$"):
        Calibration.from_json(content, "some.json")


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"error": 0.1},
        {"error": 0.1, "bins": []},
        {"error": 0.1, "bins": [{"probability": 0.1, "share": 0.1}]},
        {"error": 0.1, "bins": [{"probability": 0.1, "share": 2, "count": 1}]},
        {"error": 0.1, "bins": [{"probability": 0.1, "share": 0.1, "count": 0}]},
        {"error": 0.1, "bins": [{"probability": 0.1, "share": 0.1, "count": math.nan}]},
    ],
)
def test_a_damaged_reliability_is_too(content):
    with pytest.raises(CalibrationError, match=r"^some\.json: .+$"):
        Reliability.from_json(content, "some.json")
