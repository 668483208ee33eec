"""Errors and correlations of predicted numbers, against a naive computation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import CalibrationError
from lmpnn_kge.methods.counting import Counting, CountResult, spearman
from lmpnn_kge.query.patterns import NEGATIVE, POSITIVE

NUMBERS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=30)


def naive_ranks(values):
    """By counting: those below, and half of the others that are equal."""
    return [1 + sum(w < v for w in values) + (sum(w == v for w in values) - 1) / 2 for v in values]


def naive_spearman(first, second):
    a, b = naive_ranks(first), naive_ranks(second)
    mean = (len(a) + 1) / 2
    product = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    squares = (math.fsum((x - mean) ** 2 for x in side) for side in (a, b))
    length = math.sqrt(math.prod(squares))
    return product / length if length else None


def test_the_error_is_relative_to_the_actual_number():
    result = CountResult.measure([10, 1, 4], [5, 2, 4])
    assert result.error == pytest.approx((1 + 0.5 + 0) / 3)


def test_the_correlation_is_that_of_ranks():
    n = 7
    first, second = [1, 2, 3, 4, 5, 6, 7], [10, 20, 40, 30, 70, 60, 1000]
    distances = sum((a - b) ** 2 for a, b in zip(*map(naive_ranks, (first, second)), strict=True))
    expected = 1 - 6 * distances / (n * (n**2 - 1))  # the formula for numbers without ties
    assert spearman(np.array(first), np.array(second)) == pytest.approx(expected)


def test_ties_share_the_average_of_their_ranks():
    # ranks 1.5, 1.5, 3, 4 and 1, 2.5, 2.5, 4
    value = spearman(np.array([1.0, 1.0, 2.0, 3.0]), np.array([5.0, 6.0, 6.0, 9.0]))
    assert value == pytest.approx(3.75 / 4.5)


@given(NUMBERS)
@settings(deadline=None)
def test_a_result_is_that_of_a_naive_computation(pairs):
    predicted, actual = zip(*pairs, strict=True)
    result = CountResult.measure(predicted, actual)
    errors = [abs(p - a) / a for p, a in pairs]
    assert result.error == pytest.approx(sum(errors) / len(errors))
    assert result.correlation == pytest.approx(naive_spearman(predicted, actual))


@given(NUMBERS)
@settings(deadline=None)
def test_the_correlation_depends_on_the_order_only(pairs):
    first, second = (np.array(side, float) for side in zip(*pairs, strict=True))
    assert spearman(np.exp(first), second) == spearman(first, second)


def test_one_number_for_all_queries_has_no_correlation():
    assert CountResult.measure([3, 3, 3], [1, 2, 3]).correlation is None


def numbers(types):
    random = np.random.default_rng(0)
    actual = {name: random.integers(1, 50, 40).astype(float) for name in types}
    return {
        "actual": actual,
        "predicted": {name: values + 1 for name, values in actual.items()},
        "known": {name: np.floor(values / 2) for name, values in actual.items()},
    }


def test_baselines_are_the_known_answers_and_the_median_of_the_type():
    counting = Counting.measure(numbers(["1p"]))
    actual = numbers(["1p"])["actual"]["1p"]
    median = np.abs(np.median(actual) - actual) / actual
    assert counting.errors["median"]["1p"] == pytest.approx(median.mean())
    assert counting.errors["known"]["1p"] > counting.errors["predicted"]["1p"]
    assert counting.correlations["predicted"]["1p"] == pytest.approx(1)
    assert "median" not in counting.correlations
    assert counting.queries == {"1p": 40}


def test_averages_are_over_all_types_with_or_without_negation():
    errors = Counting.measure(numbers([*POSITIVE, *NEGATIVE[1:]])).errors["predicted"]
    assert errors["A_P"] == pytest.approx(np.mean([errors[name] for name in POSITIVE]))
    assert "A_N" not in errors


@pytest.mark.parametrize("rows", [("actual", "predicted", "known"), ("actual", "predicted")])
def test_what_is_written_is_read(rows):
    given = {row: values for row, values in numbers(["1p", "2in"]).items() if row in rows}
    counting = Counting.measure(given)
    assert Counting.from_json(counting.to_json(), "file") == counting


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("predicted"),
        lambda content: content.pop("queries"),
        lambda content: content.update(more={}),
        lambda content: content.update(queries={}),
        lambda content: content["queries"].update({"1p": 0}),
        lambda content: content["predicted"].clear(),
        lambda content: content["predicted"]["1p"].update(error=-1.0),
        lambda content: content["predicted"]["1p"].update(error=float("nan")),
        lambda content: content["predicted"]["1p"].update(correlation=1.5),
        lambda content: content["predicted"]["1p"].update(correlation="high"),
    ],
)
def test_something_else_is_refused_with_its_source(change):
    content = Counting.measure(numbers(["1p"])).to_json()
    content = {key: _copied(value) for key, value in content.items()}
    change(content)
    with pytest.raises(CalibrationError, match="file"):
        Counting.from_json(content, "file")


def _copied(value):
    return {key: dict(v) if isinstance(v, dict) else v for key, v in value.items()}
