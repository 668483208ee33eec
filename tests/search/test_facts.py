"""Known edges: every look-up agrees with plain sets."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import DatasetError
from lmpnn_kge.search.facts import Facts

E, R = 5, 3

triples = st.lists(
    st.tuples(st.integers(0, E - 1), st.integers(0, R - 1), st.integers(0, E - 1)), max_size=20
)
KEYS = torch.arange(2 * E * R)  # the key of every head and relation


def make(edges, device="cpu") -> Facts:
    array = np.array(edges, np.int64).reshape(-1, 3)
    return Facts.of(array, E, R).to(torch.device(device))


def tails_of_keys(edges) -> list[set[int]]:
    """The tails of every key, in both directions."""
    both = {(h, r, t) for h, r, t in edges} | {(t, r + R, h) for h, r, t in edges}
    return [
        {t for h, r, t in both if (h, r) == (head, relation)}
        for head in range(E)
        for relation in range(2 * R)
    ]


@given(triples)
@settings(max_examples=60, deadline=None)
def test_tails_counts_and_edges_are_those_of_the_sets(edges):
    facts, expected = make(edges), tails_of_keys(edges)
    assert len(facts) == sum(map(len, expected))
    assert facts.count(KEYS).tolist() == [len(tails) for tails in expected]
    owners, tails = facts.tails_of(KEYS)
    pairs = list(zip(owners.tolist(), tails.tolist(), strict=True))
    assert pairs == [(key, tail) for key in KEYS.tolist() for tail in sorted(expected[key])]
    every_tail = torch.arange(E)
    held = facts.hold(KEYS[:, None], every_tail)
    assert held.tolist() == [[tail in tails for tail in range(E)] for tails in expected]


@given(triples, st.lists(st.integers(0, 2 * E * R - 1), max_size=8))
@settings(max_examples=60, deadline=None)
def test_keys_may_be_repeated_and_in_any_order(edges, keys):
    facts, expected = make(edges), tails_of_keys(edges)
    owners, tails = facts.tails_of(torch.tensor(keys, dtype=torch.int64))
    found = [
        (keys[owner], tail) for owner, tail in zip(owners.tolist(), tails.tolist(), strict=True)
    ]
    assert found == [(key, tail) for key in keys for tail in sorted(expected[key])]


@given(triples, st.lists(st.integers(0, 2 * R - 1), max_size=8))
@settings(max_examples=60, deadline=None)
def test_heads_and_counts_are_those_of_the_sets(edges, relations):
    facts, expected = make(edges), tails_of_keys(edges)
    asked = torch.tensor(relations, dtype=torch.int64)
    masks, counts = facts.heads_of(asked), facts.tail_counts(asked)
    assert masks.shape == counts.shape == (len(relations), E)
    for row, relation in enumerate(relations):
        heads = [head for head in range(E) if expected[head * 2 * R + relation]]
        assert facts.heads(relation).tolist() == heads
        assert masks[row].nonzero()[:, 0].tolist() == heads
        inverse = (relation + R) % (2 * R)
        ending = [len(expected[tail * 2 * R + inverse]) for tail in range(E)]
        assert counts[row].tolist() == ending


def test_a_graph_without_edges_knows_nothing():
    facts = make([])
    assert len(facts) == 0
    assert not facts.count(KEYS).any()
    assert not facts.hold(KEYS, KEYS % E).any()
    assert [len(found) for found in facts.tails_of(KEYS)] == [0, 0]
    assert not facts.heads_of(torch.arange(2 * R)).any()
    assert not facts.tail_counts(torch.arange(2 * R)).any()


def test_no_keys_have_no_tails():
    facts = make([(0, 0, 1)])
    assert [len(found) for found in facts.tails_of(KEYS[:0])] == [0, 0]
    assert facts.count(KEYS[:0]).shape == (0,)


def test_everything_moves_to_another_device():
    facts = make([(0, 0, 1), (1, 2, 1)], "meta")
    assert {t.device.type for t in (facts.keys, facts.offsets, facts.tails)} == {"meta"}
    assert (facts.num_entities, facts.num_relations) == (E, R)


def test_more_possible_edges_than_numbers_are_refused():
    nothing = np.zeros((0, 3), np.int64)
    assert len(Facts.of(nothing, 90_000_000, 500)) == 0
    with pytest.raises(DatasetError, match="90,000,000 entities with 600 relations have more"):
        Facts.of(nothing, 90_000_000, 600)
