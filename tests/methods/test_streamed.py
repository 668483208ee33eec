"""Ranks by a table in blocks: exactly those by the whole table, ties included."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from lmpnn_kge import backbone_class
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods import streamed
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.rank import rank_types
from lmpnn_kge.query.patterns import named_patterns
from lmpnn_kge.settings.files import load_config

from .. import made_up
from ..toy_runs import tiny

ENTITIES, RELATIONS = 500, 5
TYPES = ("1p", "3p", "2u", "pin")


@dataclass(frozen=True)
class Given(LmpnnMethod):
    """Answer embeddings are whole numbers, so that all scores are exact, and many are equal."""

    def embed(self, pattern, constants, relations):
        exact = super().embed(pattern, constants, relations)
        return (8 * exact).round()


def methods(limit="8KB"):
    """A method with the whole table, and one with blocks of it."""
    backbone = backbone_class("complex").random(ENTITIES, RELATIONS, 4)
    signs = backbone.with_tensors({"entities": backbone.entities.sign()})  # of length 2
    config = load_config("tiny", tiny())
    whole = Lmpnn(signs, config)
    parted = Lmpnn(signs, config).on(torch.device("cpu"), limit)
    return Given.of(whole, config), Given.of(parted, config)


def questions(count=40):
    patterns = named_patterns()
    return {
        name: with_hard_answers(
            made_up.queries(patterns[name], count, ENTITIES, RELATIONS, seed), seed
        )
        for seed, name in enumerate(TYPES)
    }


def with_hard_answers(queries, seed):
    """The same queries with up to 30 hard answers each, some with none."""
    random = np.random.default_rng(seed)
    sets = [
        set(random.choice(ENTITIES, random.integers(0, 30), replace=False)) - set(easy.tolist())
        for easy in np.split(queries.easy.values, queries.easy.offsets[1:-1])
    ]
    return dataclasses.replace(queries, hard=made_up.answers([sorted(s) for s in sets]))


def assert_same_ranks(parted, whole):
    expected, found = rank_types(whole, questions()), rank_types(parted, questions())
    for name, (ranks, scores) in expected.items():
        np.testing.assert_array_equal(found[name][0], ranks)
        np.testing.assert_allclose(found[name][1], scores, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("limit", ["0.5KB", "8KB"])
def test_ranks_are_those_of_the_whole_table(limit):
    whole, parted = methods(limit)
    assert parted.entities is None
    assert len(list(parted.blocks())) > 2
    assert_same_ranks(parted, whole)


def test_thresholds_that_were_rounded_otherwise_are_found_and_replaced(monkeypatch):
    exact = streamed._scores_of
    monkeypatch.setattr(streamed, "_scores_of", lambda *given: exact(*given) + 0.25)
    assert_same_ranks(*reversed(methods()))


def test_a_few_queries_at_a_time_give_the_same_ranks(monkeypatch):
    monkeypatch.setattr(streamed, "HELD", 1)
    monkeypatch.setattr(streamed, "CHUNK", 7)
    assert_same_ranks(*reversed(methods()))


def test_progress_adds_up_to_all_queries():
    _, parted = methods()
    advanced = []
    ranked = {name: group.ranked for name, group in questions().items()}
    given = [(name, group, np.arange(len(group))) for name, group in ranked.items()]
    assert list(streamed.rank_streamed(parted, given, advanced.append))
    assert sum(advanced) == sum(map(len, ranked.values()))


def test_scores_of_single_questions_are_those_of_the_whole_table():
    whole, parted = methods()
    group = questions()["2u"]
    columns = [torch.from_numpy(c.astype(np.int64)) for c in (group.constants, group.relations)]
    expected, found = (
        method.answer(group.pattern, *columns)(slice(None)) for method in (whole, parted)
    )
    torch.testing.assert_close(found, expected)
