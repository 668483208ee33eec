"""The probability of answers: calibrated on made-up claims, and refused if it cannot be."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from lmpnn_kge.errors import CalibrationError
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern, named_patterns
from lmpnn_kge.search.probability import AnswerProbability, kind_of

from ..made_up import answers

E = 40


@dataclasses.dataclass(frozen=True)
class Oracle:
    """A method whose scores are known: constant c of a query is the row of its scores."""

    scores: torch.Tensor  # [n, E]

    num_entities = E
    device = torch.device("cpu")

    streamed = None

    def answer(self, pattern, constants, relations):
        return lambda rows, out=None: self.scores[constants[rows, 0]]


def make(count, seed, slope=1.0):
    """Queries whose answers follow the scores: an entity answers with the probability σ(score)."""
    random = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(count, E, generator=random) - 3
    hold = torch.rand(count, E, generator=random) < (slope * scores).sigmoid()
    hold[:, 0] |= ~hold.any(1)
    easy = torch.rand(count, E, generator=random) < 0.3
    sets = [
        [[int(e) for e in mask[row].nonzero()[:, 0]] for row in range(count)]
        for mask in (hold & easy, hold & ~easy)
    ]
    queries = Queries(
        named_patterns()["1p"],
        np.arange(count, dtype=np.int32)[:, None],
        np.zeros((count, 1), np.int32),
        *map(answers, sets),
    )
    return Oracle(scores), {"1p": queries}


def test_probabilities_are_reliable_on_other_queries():
    fitted = AnswerProbability.fit(*make(600, 0))
    reliability = fitted.measure(*make(600, 1))
    assert reliability.error < 0.03
    assert reliability.count > 4000
    assert len(reliability.bins) > 3  # not one probability for all


def test_other_scores_have_a_large_error():
    fitted = AnswerProbability.fit(*make(600, 0))
    assert fitted.measure(*make(600, 1, slope=4.0)).error > 0.05


def test_a_better_score_has_a_greater_probability():
    method, queries = make(600, 0)
    fitted = AnswerProbability.fit(method, queries)
    known = torch.zeros(1, E, dtype=torch.bool)
    order = method.scores[:1].argsort(descending=True)
    chances = fitted(queries["1p"].pattern, method.scores[:1], known, order)
    assert chances.shape == (1, E)
    assert (chances.diff() <= 1e-9).all()
    assert 0 < chances.min() < chances.max() < 1


def test_scores_without_a_limit_have_probabilities():
    method, queries = make(600, 0)
    fitted = AnswerProbability.fit(method, queries)
    known = torch.zeros(1, E, dtype=torch.bool)
    for scores in (torch.full((1, E), -torch.inf), torch.full((1, E), 1e30)):
        chances = fitted(queries["1p"].pattern, scores, known, torch.arange(E)[None])
        assert ((chances >= 0) & (chances <= 1)).all()
        every = ~known
        assert fitted(queries["1p"].pattern, scores, every, torch.arange(E)[None]).isfinite().all()


@pytest.mark.parametrize(("holds", "word"), [(True, "all"), (False, "none")])
def test_claims_that_all_hold_or_all_fail_are_refused(holds, word):
    method, queries = make(20, 0)
    group = queries["1p"]
    hard = answers([range(E) if holds else [int(row.argmin())] for row in method.scores])
    none = answers([[]] * 20)
    with pytest.raises(CalibrationError, match=f"of the best answers to valid queries {word} hold"):
        AnswerProbability.fit(method, {"1p": dataclasses.replace(group, hard=hard, easy=none)})


def test_no_queries_are_refused():
    method, queries = make(20, 0)
    for nothing in ({}, {"1p": queries["1p"].select(np.zeros(20, bool))}):
        with pytest.raises(CalibrationError, match="too few valid queries"):
            AnswerProbability.fit(method, nothing)


def test_the_kind_of_a_pattern_is_by_union_variable_and_negation():
    kinds = {name: kind_of(pattern) for name, pattern in named_patterns().items()}
    assert kinds["1p"] == kinds["2i"] == 0
    assert kinds["2in"] == kinds["3in"] == 1
    assert kinds["2p"] == kinds["pi"] == 2
    assert kinds["inp"] == kinds["pni"] == 3
    assert kinds["2u"] == 4
    assert kinds["up"] == 6
    assert kind_of(Pattern(parse("r(a, ?) & ? != b"))) == 0  # an inequality is not a negation


def test_it_survives_json():
    method, queries = make(300, 0)
    fitted = AnswerProbability.fit(method, queries)
    content = json.loads(json.dumps(fitted.to_json(), allow_nan=False))
    again = AnswerProbability.from_json(content, "file", torch.device("cpu"))
    assert again.measure(method, queries) == fitted.measure(method, queries)
