"""Arrays of triples."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge.graph.triples import both_directions, distinct, spread_evenly


@given(count=st.integers(0, 300), most=st.integers(0, 50))
def test_a_sample_is_spread_evenly_from_the_first_row_to_the_last(count, most):
    rows = spread_evenly(count, most).tolist()
    assert len(rows) == len(set(rows)) == min(count, most)
    assert rows[:1] == [0][: len(rows)]
    if len(rows) > 1:
        gaps = [after - before for before, after in pairwise(rows)]
        assert rows[-1] == count - 1
        assert max(gaps) - min(gaps) <= 1


def test_few_rows_are_all_taken():
    assert spread_evenly(3, 3).tolist() == spread_evenly(3, 10).tolist() == [0, 1, 2]
    assert spread_evenly(10, 4).tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_every_triple_is_followed_by_its_inverse_with_head_and_tail_exchanged(dtype):
    triples = np.array([[0, 1, 2], [3, 0, 3]], dtype)
    both = both_directions(triples, num_relations=5)
    assert both.tolist() == [[0, 1, 2], [3, 0, 3], [2, 6, 0], [3, 5, 3]]
    assert both.dtype == dtype


def test_an_empty_array_has_no_inverses():
    assert both_directions(np.zeros((0, 3), np.int64), 5).shape == (0, 3)


@given(st.lists(st.integers(-5, 5)), st.sampled_from([np.int32, np.int64]))
def test_distinct_keys_are_those_of_numpy(keys, kind):
    array = np.array(keys, kind)
    assert np.array_equal(distinct(array), np.unique(array))
    assert distinct(array).dtype == kind


def test_distinct_keys_of_several_columns():
    assert distinct(np.array([[3, 1], [1, 0]])).tolist() == [0, 1, 3]
