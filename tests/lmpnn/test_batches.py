"""Training input: the batches of an epoch, resuming anywhere, and the thread that draws them."""

import itertools
import threading
from collections import Counter
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.lmpnn import batches as module
from lmpnn_kge.lmpnn.batches import Batch, Input, prefetched
from lmpnn_kge.processes import Processes
from lmpnn_kge.query.patterns import named_patterns
from lmpnn_kge.settings.files import load_config

from .. import made_up

PATTERNS = named_patterns()
CPU = torch.device("cpu")
ENTITIES, RELATIONS = 40, 3
SIZES = {"1p": 23, "2i": 16, "up": 5, "pni": 1}


def make(negatives: str = "shared", entities: int = ENTITIES, **changes) -> Input:
    queries = {
        name: made_up.queries(PATTERNS[name], size, entities, RELATIONS, seed)
        for seed, (name, size) in enumerate(SIZES.items())
    }
    settings = {"batch_size": 8, "negative_count": 6, "negatives": negatives, **changes}
    return Input(queries, entities, load_config(settings=settings))


def drawn_from(source: Input, epoch: int, start: int = 0) -> list[Batch]:
    """The batches of an epoch, none of which is divided."""
    return [batch for (batch,) in source.epoch(epoch, start)]


def same(one: Batch, other: Batch) -> bool:
    def tensors(batch):
        ids = [batch.constants, batch.relations, batch.positives]
        return [*ids, batch.negatives, batch.known]

    return one.pattern == other.pattern and all(
        (a is None and b is None) or torch.equal(a, b)
        for a, b in zip(tensors(one), tensors(other), strict=True)
    )


def asked(batch: Batch) -> list[tuple]:
    rows = zip(batch.constants.tolist(), batch.relations.tolist(), strict=True)
    return [(str(batch.pattern), tuple(cs), tuple(rs)) for cs, rs in rows]


def all_queries(source: Input) -> Counter:
    return Counter(
        (str(queries.pattern), tuple(cs), tuple(rs))
        for queries in source.queries.values()
        for cs, rs in zip(queries.constants.tolist(), queries.relations.tolist(), strict=True)
    )


@pytest.mark.parametrize("size", [1, 7, 8, 100])
def test_an_epoch_has_every_query_once_in_batches_of_one_pattern(size):
    source = make(batch_size=size)
    found = drawn_from(source, 0)
    assert len(found) == len(source)
    assert Counter(query for batch in found for query in asked(batch)) == all_queries(source)
    for batch in found:
        assert 1 <= len(batch) <= size
        assert batch.constants.shape == (len(batch), len(batch.pattern.constants))
        assert batch.relations.shape == (len(batch), len(batch.pattern.relations))


def test_patterns_are_mixed():
    order = [str(batch.pattern) for batch in drawn_from(make(batch_size=1), 0)]
    changes = sum(one != other for one, other in itertools.pairwise(order))
    assert changes > 2 * len(SIZES)


def test_a_positive_is_an_answer_of_its_query_and_any_of_them_in_the_long_run():
    source = make()
    answers = {}
    for queries in source.queries.values():
        for row in range(len(queries)):
            key = (
                str(queries.pattern),
                tuple(queries.constants[row].tolist()),
                tuple(queries.relations[row].tolist()),
            )
            answers.setdefault(key, set()).update(queries.easy.of(row).tolist())
    drawn: dict = {key: set() for key in answers}
    for epoch in range(60):
        for batch in drawn_from(source, epoch):
            for key, positive in zip(asked(batch), batch.positives.tolist(), strict=True):
                drawn[key].add(positive)
    assert drawn == answers


@given(start=st.integers(0, 9), epoch=st.integers(0, 5), seed=st.integers(0, 3))
@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("negatives", ["independent", "shared", "all"])
def test_an_epoch_can_be_entered_anywhere(negatives, start, epoch, seed):
    whole = drawn_from(make(negatives, seed=seed), epoch)
    rest = drawn_from(make(negatives, seed=seed), epoch, start)
    assert len(rest) == max(0, len(whole) - start)
    assert all(map(same, rest, whole[start:]))


def test_epochs_and_seeds_differ():
    source = make()
    first, second = drawn_from(source, 0), drawn_from(source, 1)
    other = drawn_from(make(seed=1), 0)
    for found in (second, other):
        assert [asked(batch) for batch in found] != [asked(batch) for batch in first]
        assert not torch.equal(found[0].negatives, first[0].negatives)


def test_no_batch_is_drawn_with_the_numbers_that_shuffle_the_epoch(monkeypatch):
    """numpy seeds [s, e] and [s, e, 0] alike."""
    source, states = make(), []
    original = np.random.default_rng

    def remember(seed):
        random = original(seed)
        states.append(random.bit_generator.state["state"]["state"])
        return random

    monkeypatch.setattr(np.random, "default_rng", remember)
    drawn = drawn_from(source, 3)
    assert len(states) == len(drawn) + 1
    assert len(set(states)) == len(states)


def test_noise_is_independent_shared_or_everything():
    for batch in drawn_from(make("independent"), 0):
        assert batch.negatives.shape == (len(batch), 6)
        assert 0 <= batch.negatives.min() <= batch.negatives.max() < ENTITIES
    shared = [batch.negatives for batch in drawn_from(make("shared"), 0)]
    for negatives in shared:
        assert negatives.shape == (6,)
        assert len(negatives.unique()) == 6
        assert 0 <= negatives.min() <= negatives.max() < ENTITIES
    assert not any(torch.equal(one, shared[0]) for one in shared[1:])
    assert all(batch.negatives is None for batch in drawn_from(make("all"), 0))


@pytest.mark.parametrize("count", [ENTITIES, ENTITIES + 1])
def test_as_many_shared_ones_as_entities_are_all_of_them(count):
    assert all(batch.negatives is None for batch in drawn_from(make(negative_count=count), 0))
    nearly = drawn_from(make(negative_count=ENTITIES - 1), 0)[0].negatives
    assert len(nearly.unique()) == ENTITIES - 1


@pytest.mark.parametrize("negatives", ["independent", "shared", "all"])
def test_what_is_known_are_the_answers_among_the_noise(negatives):
    source = make(negatives)
    answers = {
        (str(queries.pattern), tuple(cs), tuple(rs)): set(queries.easy.of(place).tolist())
        for queries in source.queries.values()
        for place, (cs, rs) in enumerate(
            zip(queries.constants.tolist(), queries.relations.tolist(), strict=True)
        )
    }
    for batch in drawn_from(source, 0):
        noise = torch.arange(ENTITIES) if batch.negatives is None else batch.negatives
        columns = noise.expand(len(batch), -1).tolist()
        expected = {
            (row, column)
            for row, query in enumerate(asked(batch))
            for column, entity in enumerate(columns[row])
            if entity in answers[query]
        }
        assert set(map(tuple, batch.known.T.tolist())) == expected
        assert batch.known.shape == (2, len(expected))
    assert all(batch.known is None for batch in drawn_from(make(negatives, positives="one"), 0))


def test_ids_are_what_torch_indexes_with():
    for batch in drawn_from(make(), 0):
        for value in vars(batch).values():
            assert not isinstance(value, torch.Tensor) or value.dtype == torch.int64


# The thread ---------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize("ahead", [1, 4, 100])
def test_batches_drawn_ahead_are_the_same_in_the_same_order(monkeypatch, ahead):
    monkeypatch.setattr(module, "AHEAD", ahead)
    expected = drawn_from(make(), 2)
    found = [batch for (batch,) in prefetched(make().epoch(2), CPU)]
    assert len(found) == len(expected)
    assert all(map(same, found, expected))


def test_they_are_put_on_the_device():
    for (batch,) in prefetched(make().epoch(0), torch.device("meta")):
        tensors = [value for value in vars(batch).values() if isinstance(value, torch.Tensor)]
        assert len(tensors) == 5
        assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert drawn_from(make("all"), 0)[0].to(torch.device("meta")).negatives is None


def test_an_error_in_drawing_is_raised_where_the_batch_is_asked_for():
    def broken():
        yield from make().epoch(0, len(make()) - 2)
        raise OSError("the disk is gone")

    ready = prefetched(broken(), CPU)
    assert len([next(ready), next(ready)]) == 2
    with pytest.raises(OSError, match="the disk is gone"):
        next(ready)


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_who_stops_early_stops_the_thread(taken):
    drawn = []

    def endless():
        while True:
            for batch in make().epoch(0):
                drawn.append(batch)
                yield batch

    with closing(prefetched(endless(), CPU)) as ready:
        for _ in range(taken):
            next(ready)
    # Not more than are kept ready, and the one that waits for its place.
    assert len(drawn) <= taken + module.AHEAD + 1


def test_an_error_at_the_consumer_stops_the_thread_too():
    def consume():
        with closing(prefetched(make().epoch(0), CPU)) as ready:
            for batch in ready:
                raise ZeroDivisionError(batch)

    with pytest.raises(ZeroDivisionError):
        consume()


def test_nothing_to_draw_is_nothing_to_wait_for():
    assert list(prefetched(iter(()), CPU)) == []


# A batch in parts


@given(count=st.integers(1, 4), parts=st.integers(1, 5), size=st.integers(1, 12))
@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("negatives", ["independent", "shared", "all"])
def test_the_parts_of_all_processes_are_the_whole_batch(negatives, count, parts, size):
    size = max(size, parts)
    whole = drawn_from(make(negatives, batch_size=size), 0)
    source = make(negatives, batch_size=size, parts=parts)
    shared = [replace(source, processes=Processes(rank, count)).epoch(0) for rank in range(count)]
    for batch, *divided in zip(whole, *shared, strict=True):
        pieces = [part for own in divided for part in own]
        assert len({len(own) for own in divided}) == 1
        assert sum(part.share for part in pieces) == pytest.approx(1)
        assert all(part.share in (0, len(part) / len(batch)) for part in pieces)
        full = [part for part in pieces if part.share]
        firsts = [0, *itertools.accumulate(map(len, full))][:-1]
        shifts = [torch.tensor([[first], [0]]) for first in firsts]
        known = [part.known + shift for part, shift in zip(full, shifts, strict=True)]
        own = negatives == "independent"
        joined = Batch(
            batch.pattern,
            *(torch.cat([getattr(p, n) for p in full]) for n in ("constants", "relations")),
            torch.cat([part.positives for part in full]),
            torch.cat([part.negatives for part in full]) if own else full[0].negatives,
            torch.cat(known, 1),
        )
        assert same(joined, batch)
