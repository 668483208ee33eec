"""What is fitted: the same after JSON, better than before, and refused in one line if damaged."""

import copy
import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import CalibrationError, LmpnnError, RunError
from lmpnn_kge.methods.names import HYBRID, SEARCH
from lmpnn_kge.methods.rank import evaluate
from lmpnn_kge.search.fit import Fit, fit, held_out, make_search
from lmpnn_kge.search.hybrid import Hybrid
from lmpnn_kge.search.search import Search
from lmpnn_kge.search.truth import Weights
from lmpnn_kge.work.listener import SILENT, Listener

from . import made_up
from .made_up import R, flat_backbone

CPU = torch.device("cpu")


class Notes(Listener):
    def __init__(self):
        self.texts = []

    def note(self, text):
        self.texts.append(text)


def fitted(name, world, listener=SILENT, queries=None, **changes) -> Fit:
    queries = world.queries if queries is None else queries
    return fit(name, world.backbone, world.facts, queries, made_up.settings(**changes), listener)


@pytest.fixture(scope="module", params=[SEARCH, HYBRID])
def named_fit(request, world):
    return request.param, fitted(request.param, world)


def method(fitted, world, **changes):
    return fitted.method(world.backbone, world.facts, made_up.settings(**changes))


def all_scores(method, world):
    scores = []
    for group in world.queries.values():
        ids = [torch.tensor(column.tolist()) for column in (group.constants, group.relations)]
        scores.append(method.answer(group.pattern, *ids)(slice(None)))
    return torch.cat(scores)


def test_json_changes_nothing(named_fit, world):
    name, fit_ = named_fit
    text = json.dumps(fit_.to_json(), allow_nan=False)
    again = Fit.from_json(name, json.loads(text), "file", R, CPU)
    before, after = (all_scores(method(f, world), world) for f in (fit_, again))
    assert torch.equal(before, after)
    measured = [f.probability.measure(method(f, world), world.queries) for f in (fit_, again)]
    assert measured[0] == measured[1]
    assert json.dumps(again.to_json()) == text


def test_the_methods_are_search_and_hybrid(named_fit, world):
    name, fit_ = named_fit
    assert isinstance(method(fit_, world), Search if name == SEARCH else Hybrid)


def test_a_fit_is_better_than_weights_that_fit_nothing(named_fit, world):
    _, fit_ = named_fit
    unfit = make_search(
        world.backbone, world.facts, made_up.settings(), Weights.uniform(10.0, -3.0, R)
    )
    before, after = (evaluate(m, world.queries).mean for m in (unfit, method(fit_, world)))
    assert after > before + 0.02


def test_the_same_seed_fits_the_same(named_fit, world):
    name, fit_ = named_fit
    assert fitted(name, world).to_json() == fit_.to_json()


def paths(content, path=()):
    """All places in nested JSON; of a long list only the ends."""
    yield path
    if isinstance(content, dict):
        items = content.items()
    elif isinstance(content, list) and content:
        items = {0: content[0], len(content) - 1: content[-1]}.items()
    else:
        items = ()
    for key, value in items:
        yield from paths(value, (*path, key))


def deep(depth):
    return json.loads("[" * depth + "]" * depth)


DAMAGES = st.one_of(
    st.sampled_from([None, True, "", "x", [], {}, [[]], [None], {"a": 1}, [1, 2, 3], deep(50)]),
    st.sampled_from([-1, 0, 1e308, -1e308, 10**400, 1e39, math.nan, math.inf]),
    st.floats(),
    st.integers(),
)


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_file_is_one_line_or_a_usable_method(named_fit, world, data):
    name, fit_ = named_fit
    content = copy.deepcopy(fit_.to_json())
    path = data.draw(st.sampled_from(list(paths(content))))
    damage = data.draw(DAMAGES)
    if path:
        *outer, last = path
        place = content
        for key in outer:
            place = place[key]
        if data.draw(st.booleans()):
            place[last] = damage
        else:
            del place[last]
    else:
        content = damage
    read = error = None
    try:
        read = Fit.from_json(name, content, "some.json", R, CPU)
    except CalibrationError as raised:
        error = str(raised)
    if read is None:
        assert error.startswith("some.json: ")
        assert "\n" not in error
        return
    assert (read.reranker is None) == (name == SEARCH)
    scores = all_scores(method(read, world), world)
    assert scores.shape[1] == made_up.E


def test_a_fit_of_another_method_is_refused(world):
    content = fitted(SEARCH, world).to_json()
    with pytest.raises(CalibrationError, match=r"some\.json"):
        Fit.from_json(HYBRID, content, "some.json", R, CPU)


def test_a_fit_for_other_relations_is_refused(named_fit):
    name, fit_ = named_fit
    with pytest.raises(CalibrationError, match=r"some\.json: a table has 6 rows and not 8"):
        Fit.from_json(name, fit_.to_json(), "some.json", R + 1, CPU)


@pytest.mark.parametrize("name", [SEARCH, HYBRID])
def test_without_valid_queries_there_is_one_clear_line(world, name):
    with pytest.raises(RunError, match="fitted on valid queries, and there are none; give beta"):
        fitted(name, world, queries={})
    if name == HYBRID:
        with pytest.raises(RunError, match="hybrid learns on valid queries, and there are none"):
            fitted(name, world, queries={}, beta=1.0, bias=0.0)


def test_search_needs_no_queries_if_its_weights_are_given(world):
    fit_ = fitted(SEARCH, world, queries={}, beta=0.25, bias=-1.5)
    assert fit_.probability is None
    assert float(fit_.weights.beta) == 0.25
    assert (fit_.weights.relations[:, 1] == -1.5).all()
    again = Fit.from_json(SEARCH, json.loads(json.dumps(fit_.to_json())), "file", R, CPU)
    assert again.probability is None


def test_given_weights_are_taken_also_with_queries(world):
    fit_ = fitted(SEARCH, world, beta=0.25, bias=-1.5)
    assert (float(fit_.weights.beta), float(fit_.weights.relations[0, 1])) == (0.25, -1.5)
    assert fit_.probability is not None


@pytest.mark.parametrize("name", [SEARCH, HYBRID])
def test_equal_scores_are_one_clear_line(world, name):
    flat = dataclasses.replace(world, backbone=flat_backbone())
    with pytest.raises(LmpnnError, match="all entities the same score"):
        fitted(name, flat)


@pytest.mark.parametrize("name", [SEARCH, HYBRID])
@pytest.mark.parametrize("count", [1, 2, 6])
@pytest.mark.parametrize("types", [("1p",), ("2p",), ("1p", "2u", "2in")])
def test_a_few_queries_are_enough(world, name, count, types):
    few = {type_: world.queries[type_].select(np.arange(40) < count) for type_ in types}
    fit_ = fitted(name, world, queries=few)
    assert all_scores(method(fit_, world), world).isfinite().any(1).all()


def test_if_no_answer_holds_there_is_no_probability_and_a_note(world):
    notes = Notes()
    one = {"1p": world.queries["1p"].select(np.arange(40) < 1)}
    fit_ = fitted(SEARCH, world, notes, one)
    assert fit_.probability is None
    (note,) = notes.texts
    assert note == (
        "the probability of answers cannot be fitted: there are too few valid queries; answers "
        "have no probability"
    )


def test_no_query_is_both_learnt_from_and_held_out():
    assert not held_out(1).any()
    for count in (2, 5, 6, 300, 1500, 5000):
        mask = held_out(count)
        assert len(mask) == count
        assert 1 <= mask.sum() <= 300
        assert (~mask).sum() >= count * 0.5


def test_ignored_facts_are_not_certain(world):
    fit_ = fitted(SEARCH, world, queries={}, beta=0.25, bias=-1.0)
    known, ignored = (
        all_scores(method(fit_, world, facts=facts), world) for facts in ("known", "ignored")
    )
    assert (known == 0).any()
    assert (ignored < 0).all()
