"""Time limits: they hold in their block, in their thread, and for whoever checks them."""

import threading

import pytest

from lmpnn_kge.errors import QueryError, TimeLimitError
from lmpnn_kge.work.deadline import check_time, seconds_left, time_limit

NOW = 1e-9  # seconds, over at once


@pytest.mark.parametrize("seconds", [None, 0])
def test_without_a_limit_there_is_always_time(seconds):
    with time_limit(seconds):
        assert seconds_left() is None
        check_time()


def test_a_limit_ends_with_its_block():
    with time_limit(1000):
        assert 0 < seconds_left() <= 1000
    assert seconds_left() is None


def test_time_that_is_over_is_an_error_that_says_what_to_do():
    with time_limit(NOW), pytest.raises(TimeLimitError, match=r"within 1e-09 s; .* --timeout"):
        check_time()
    assert issubclass(TimeLimitError, QueryError)


def test_an_inner_limit_cannot_extend_an_outer_one():
    with time_limit(NOW), time_limit(1000), pytest.raises(TimeLimitError):
        check_time()
    with time_limit(1000), time_limit(None):
        assert seconds_left() is not None


def test_a_limit_belongs_to_its_thread():
    left = []
    with time_limit(1000):
        thread = threading.Thread(target=lambda: left.append(seconds_left()))
        thread.start()
        thread.join()
    assert left == [None]
