"""Intervals against the exact distribution of all samples, and against known distributions."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.methods import bootstrap
from lmpnn_kge.methods.bootstrap import compare_paired, mean_intervals, resampled_means
from lmpnn_kge.query.patterns import NEGATIVE, POSITIVE


def array(*values):
    return np.array(values, float)


def exact_means(values):
    """The mean of every sample with replacement; all samples are equally likely."""
    return [sum(sample) / len(values) for sample in product(values, repeat=len(values))]


def exact_quantile(means, share):
    """The smallest mean that at least this share of all samples does not exceed."""
    return sorted(means)[math.ceil(share * len(means)) - 1]


def test_a_constant_difference_has_an_interval_of_one_point():
    first = array(0.1, 0.9, 0.4)
    found = compare_paired({"1p": first}, {"1p": first + 0.05})["1p"]
    assert (found.low, found.high) == pytest.approx((0.05, 0.05))
    assert found.value == pytest.approx(0.05)
    assert found.is_significant


def test_equal_methods_differ_by_nothing():
    values = np.random.default_rng(1).random(50)
    found = compare_paired({"1p": values}, {"1p": values.copy()})["1p"]
    assert (found.value, found.low, found.high) == (0, 0, 0)
    assert not found.is_significant


def test_zeros_and_ones_give_the_quantiles_of_a_binomial_distribution():
    """The sum of n draws, k of n of which are 1, is binomial: its quantiles are known exactly."""
    n, k = 25, 12
    share = k / n
    masses = [math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(n + 1)]
    cumulated = np.cumsum(masses)
    # No step of the distribution is so near to a quantile that chance could decide.
    assert min(abs(cumulated - 0.025).min(), abs(cumulated - 0.975).min()) > 0.008
    low, high = (int(np.searchsorted(cumulated, q)) / n for q in (0.025, 0.975))
    second = np.repeat([1.0, 0.0], [k, n - k])
    found = compare_paired({"1p": np.zeros(n)}, {"1p": second}, resamples=100_000)["1p"]
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (low, high) == (0.28, 0.68)


def test_a_normal_sample_gives_the_interval_of_its_standard_error():
    values = np.random.default_rng(3).normal(0.02, 0.1, 4000)
    found = compare_paired({"1p": np.zeros(4000)}, {"1p": values})["1p"]
    error = values.std() / math.sqrt(4000)
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


@pytest.mark.parametrize("values", [(0.0, 0.3, 1.0, 0.35, 0.5), (-1.0, 0.25, 0.5, 2.0)])
def test_an_interval_is_that_of_all_samples(values):
    means = exact_means(values)
    found = compare_paired({"x": np.zeros(len(values))}, {"x": array(*values)}, 200_000)["x"]
    for share, end in ((0.025, found.low), (0.975, found.high)):
        near = [exact_quantile(means, share + step) for step in (-0.002, 0.002)]
        assert near[0] - 1e-9 <= end <= near[1] + 1e-9


def test_an_average_draws_every_type_by_itself():
    """A_N of five types with two queries each: all 4⁵ samples of the differences."""
    differences = {
        name: array(0.1 * place, -0.2 + 0.05 * place) for place, name in enumerate(NEGATIVE)
    }
    first = {name: np.full(2, 0.5) for name in NEGATIVE}
    second = {name: 0.5 + values for name, values in differences.items()}
    means = [sum(parts) / 5 for parts in product(*(exact_means(differences[n]) for n in NEGATIVE))]
    found = compare_paired(first, second, 200_000)
    average = found["A_N"]
    assert "A_P" not in found
    assert average.queries == 10
    assert average.value == pytest.approx(np.mean([found[n].value for n in NEGATIVE]))
    for share, end in ((0.025, average.low), (0.975, average.high)):
        near = [exact_quantile(means, share + step) for step in (-0.003, 0.003)]
        assert near[0] - 1e-9 <= end <= near[1] + 1e-9


def test_the_interval_of_a_mean_is_that_of_its_difference_from_nothing():
    values = {name: np.random.default_rng(4).random(20) for name in NEGATIVE}
    zeros = {name: np.zeros(20) for name in NEGATIVE}
    found = compare_paired(zeros, values, 500, seed=3)
    intervals = mean_intervals(values, 500, seed=3)
    assert intervals == {name: (each.low, each.high) for name, each in found.items()}
    assert [*intervals] == [*NEGATIVE, "A_N"]


def test_pairs_are_kept_together():
    """Values that vary much, with a difference that does not, are told apart."""
    first = np.random.default_rng(5).random(200)
    second = first + np.random.default_rng(6).normal(0.01, 0.01, 200)
    assert compare_paired({"1p": first}, {"1p": second})["1p"].is_significant
    shuffled = np.random.default_rng(7).permutation(second)
    assert not compare_paired({"1p": first}, {"1p": shuffled})["1p"].is_significant


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_the_other_way_round_is_the_negative(values, seed):
    zeros = {"1p": np.zeros(len(values))}
    one = compare_paired(zeros, {"1p": array(*values)}, 300, seed)["1p"]
    other = compare_paired({"1p": array(*values)}, zeros, 300, seed)["1p"]
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
    assert one.low - 1e-12 <= one.high
    assert min(values) - 1e-12 <= one.low
    assert one.high <= max(values) + 1e-12


def test_a_seed_decides_and_the_size_of_a_chunk_does_not(monkeypatch):
    values = {name: np.random.default_rng(8).random(30) for name in POSITIVE}
    zeros = {name: np.zeros(30) for name in POSITIVE}
    first = compare_paired(zeros, values, 500, seed=1)
    assert first == compare_paired(zeros, values, 500, seed=1)
    assert first != compare_paired(zeros, values, 500, seed=2)
    whole = resampled_means(values["1p"], 500, np.random.SeedSequence(1))
    monkeypatch.setattr(bootstrap, "CHUNK", 64)
    parts = resampled_means(values["1p"], 500, np.random.SeedSequence(1))
    assert np.array_equal(parts, whole)
