"""Time limits: they hold in their block, in their thread, and for whoever checks them."""

import threading

import pytest

from lmpnn_kge.errors import QueryError, TimeLimitError
from lmpnn_kge.work.deadline import check_time, current_deadline, time_limit

NOW = 1e-9  # seconds, over at once


@pytest.mark.parametrize("seconds", [None, 0])
def test_without_a_limit_there_is_always_time(seconds):
    with time_limit(seconds):
        assert current_deadline() is None
        check_time()


def test_a_limit_ends_with_its_block():
    with time_limit(1000):
        assert current_deadline().seconds == 1000
    assert current_deadline() is None


def test_time_that_is_over_is_an_error_that_says_what_to_do():
    with time_limit(NOW), pytest.raises(TimeLimitError, match=r"within 1e-09 s; .* --timeout"):
        check_time()
    assert issubclass(TimeLimitError, QueryError)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("-inf")])
def test_a_limit_that_is_none_is_refused(seconds):
    with pytest.raises(QueryError, match="at least 0 seconds"), time_limit(seconds):
        pass


def test_a_limit_may_be_longer_than_anybody_lives():
    with time_limit(10**400):
        check_time()


def test_an_inner_limit_cannot_extend_an_outer_one():
    with time_limit(NOW), time_limit(1000), pytest.raises(TimeLimitError):
        check_time()
    with time_limit(1000), time_limit(None):
        assert current_deadline() is not None


def test_a_limit_belongs_to_its_thread():
    left = []
    with time_limit(1000):
        thread = threading.Thread(target=lambda: left.append(current_deadline()))
        thread.start()
        thread.join()
    assert left == [None]
