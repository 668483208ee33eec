"""Numbers of answers: exact if all is known, and fitted to scores and known answers otherwise."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import CalibrationError
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import named_patterns
from lmpnn_kge.search.counting import FEATURES, AnswerCount
from lmpnn_kge.search.probability import KINDS

from ..made_up import answers
from .test_probability import E, Oracle

PATTERNS = named_patterns()


def random_count(seed):
    """Any weights; what is known without negation holds."""
    random = torch.Generator().manual_seed(seed)
    weights = torch.randn(FEATURES + KINDS, generator=random).double()
    kept = torch.tensor([1.0, 0.5] * (KINDS // 2)).double()
    return AnswerCount(weights[:FEATURES], weights[FEATURES:], kept)


@given(
    st.sets(st.integers(0, E - 1)), st.integers(0, 99), st.sampled_from(["1p", "2i", "3p", "2u"])
)
@settings(deadline=None, max_examples=50)
def test_a_query_whose_answers_are_all_known_has_exactly_their_number(known, seed, name):
    """No other entity can be an answer: whatever was fitted, nothing is added."""
    mask = torch.zeros(1, E, dtype=torch.bool)
    mask[0, list(known)] = True
    scores = torch.where(mask, 0.0, -torch.inf)
    assert random_count(seed)(PATTERNS[name], scores, mask).tolist() == [len(known)]


@given(st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_a_number_lies_between_the_known_answers_and_all_entities(seed):
    random = torch.Generator().manual_seed(seed)
    scores = 10 * torch.randn(8, E, generator=random)
    known = torch.rand(8, E, generator=random) < 0.2
    predicted = random_count(seed)(PATTERNS["2p"], scores, known)
    assert bool((predicted >= known.sum(1)).all())
    assert bool((predicted <= E).all())


def make(count, seed, name="1p", kept=1.0):
    """Some entities have high scores, and answer; some of the answers are known.

    Only a share of what is known holds, as with negation.
    """
    random = torch.Generator().manual_seed(seed)
    share = 0.05 + 0.5 * torch.rand(count, 1, generator=random)
    hold = torch.rand(count, E, generator=random) < share
    hold[:, 0] = True
    known = hold & (torch.rand(count, E, generator=random) < 0.5)
    lost = known & (torch.rand(count, E, generator=random) > kept)
    lost[:, 0] = False
    scores = torch.where(hold, -0.5, -6.0) + 0.2 * torch.randn(count, E, generator=random)
    hold &= ~lost
    sets = [
        [mask[row].nonzero()[:, 0].tolist() for row in range(count)]
        for mask in (hold & known, hold & ~known)
    ]
    pattern = PATTERNS[name]
    rows = np.arange(count, dtype=np.int32)[:, None]
    queries = Queries(
        pattern,
        rows.repeat(len(pattern.constants), 1),
        np.zeros((count, len(pattern.relations)), np.int32),
        *map(answers, sets),
    )
    return Oracle(scores), {name: queries}, lambda _, constants, __: known[constants[:, 0]]


def test_numbers_on_other_queries_are_closer_than_the_baselines():
    errors = AnswerCount.fit(*make(300, 0)).measure(*make(300, 1)).errors
    assert errors["predicted"]["1p"] < 0.1
    assert errors["known"]["1p"] > 0.3
    assert errors["median"]["1p"] > 0.3


def test_scores_alone_are_enough_if_they_tell_answers_apart():
    (method, queries, _), (other, tests, _) = make(300, 0), make(300, 1)
    measured = AnswerCount.fit(method, queries, None).measure(other, tests, None)
    assert measured.errors["predicted"]["1p"] < 0.1
    assert measured.correlations["predicted"]["1p"] > 0.9
    assert "known" not in measured.rows


def test_with_negation_the_share_of_known_answers_that_hold_is_learnt():
    fitted = AnswerCount.fit(*make(400, 0, "2in", kept=0.5))
    errors = fitted.measure(*make(400, 1, "2in", kept=0.5)).errors
    assert fitted.kept[1] < 0.9
    assert fitted.kept[0] == 1
    assert errors["predicted"]["2in"] < 0.5 * errors["known"]["2in"]


def test_what_is_written_predicts_the_same():
    fitted = AnswerCount.fit(*make(100, 0))
    content = json.loads(json.dumps(fitted.to_json()))
    read = AnswerCount.from_json(content, "file", torch.device("cpu"))
    assert read.measure(*make(50, 1)) == fitted.measure(*make(50, 1))


@pytest.mark.parametrize("change", [{"weights": [1.0]}, {"kept": "all"}, {"more": []}])
def test_something_else_is_refused_with_its_source(change):
    content = {**random_count(0).to_json(), **change}
    with pytest.raises(CalibrationError, match="file"):
        AnswerCount.from_json(content, "file", torch.device("cpu"))


def test_nothing_to_fit_on_is_refused():
    method, _, known = make(1, 0)
    with pytest.raises(CalibrationError, match="there are no queries"):
        AnswerCount.fit(method, {}, known)
