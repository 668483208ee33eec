"""How the processes of a job divide work and add; `training/test_job.py` starts real ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge import RunError
from lmpnn_kge.device import choose_device
from lmpnn_kge.processes import ALONE, Processes, current, job, launched_rank, sum_in_pairs
from lmpnn_kge.processes import _current as context

few = st.integers(1, 9)


@given(length=st.integers(0, 50), parts=few, count=few)
@settings(deadline=None)
def test_the_spans_of_all_processes_cover_a_sequence_in_order(length, parts, count):
    spans = [Processes(rank, count).spans(length, parts) for rank in range(count)]
    assert [n for own in spans for span in own for n in range(length)[span]] == [*range(length)]
    (number,) = {len(own) for own in spans}
    assert number == -(-parts // count)
    sizes = {span.stop - span.start for own in spans for span in own}
    assert max(sizes) - min(sizes) <= 1


@given(length=st.integers(0, 50), power=st.integers(0, 3), fewer=st.integers(0, 3))
@settings(deadline=None)
def test_the_parts_do_not_depend_on_the_number_of_processes(length, power, fewer):
    parts, count = 2**power, 2 ** min(power, fewer)
    together = [
        span for rank in range(count) for span in Processes(rank, count).spans(length, parts)
    ]
    assert together == ALONE.spans(length, parts)


@given(number=st.integers(0, 100), count=few)
@settings(deadline=None)
def test_a_piece_of_work_is_taken_once(number, count):
    assert sum(Processes(rank, count).takes(number) for rank in range(count)) == 1


@given(data=st.data(), groups=st.integers(1, 6), size=st.sampled_from([1, 2, 4]))
@settings(deadline=None)
def test_pairs_are_added_in_the_same_order_whoever_adds_them(data, groups, size):
    numbers = st.floats(-1e6, 1e6, width=32)
    drawn = data.draw(st.lists(numbers, min_size=groups * size, max_size=groups * size))
    values = torch.tensor(drawn)
    elsewhere = [sum_in_pairs(part) for part in values.split(size)]
    assert torch.equal(sum_in_pairs(elsewhere), sum_in_pairs(values))
    total = values.double().sum().float()
    torch.testing.assert_close(sum_in_pairs(values), total, atol=2, rtol=0)


def test_a_process_by_itself_shares_nothing(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    with job() as processes:
        assert processes is current() is ALONE
    values = torch.arange(3.0)
    assert ALONE.sum(values) is ALONE.concatenate(values) is values
    assert ALONE.broadcast(b"it") == b"it"
    assert ALONE.any(True)
    assert not ALONE.any()
    assert ALONE.claims("a") is ALONE.claims("a") is True
    with ALONE.in_turn():
        assert current() is ALONE


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({"WORLD_SIZE": "1", "RANK": "0", "MASTER_ADDR": "localhost"}, None),  # one process
        ({"WORLD_SIZE": "4", "RANK": "3"}, None),  # set for something else
        ({"WORLD_SIZE": "4", "RANK": "3", "MASTER_ADDR": "localhost"}, 3),
    ],
)
def test_a_launcher_is_recognised_by_what_it_sets(monkeypatch, environment, rank):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert launched_rank() == rank


def test_processes_do_not_share_a_gpu():
    token = context.set(Processes(1, 2, local_rank=1))
    try:
        with pytest.raises(RunError, match="'cuda:0' is one GPU, but 2 processes need one each"):
            choose_device("cuda:0")
        if not torch.cuda.is_available():
            with pytest.raises(RunError, match="'cuda:0' cannot be used here"):
                choose_device("cuda")
    finally:
        context.reset(token)
