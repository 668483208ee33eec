"""The weights of the truth of edges: the best are found, given ones are taken, learning helps."""

import dataclasses

import numpy as np
import pytest
import torch

from lmpnn_kge.errors import RunError
from lmpnn_kge.methods.rank import evaluate
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern, named_patterns
from lmpnn_kge.search import tune
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.fit import make_search, make_truth
from lmpnn_kge.search.questions import in_batches, listwise_loss
from lmpnn_kge.search.truth import Weights
from lmpnn_kge.work.listener import SILENT

from .made_up import E, R, flat_backbone, settings


def make(world):
    return lambda weights: make_search(world.backbone, world.facts, settings(), weights)


def quality(world, weights):
    return evaluate(make(world)(weights), world.queries, "valid").mean


def choose(world, **given):
    deviation = tune.score_deviation(world.backbone, world.facts)
    return tune.choose_weights(make(world), deviation, R, world.queries, settings(**given), SILENT)


def test_the_deviation_is_that_of_a_row(world):
    keys = world.facts.keys
    rows = world.backbone.score_tails(keys // (2 * R), keys % (2 * R))
    expected = float(rows.std(1).mean())
    assert tune.score_deviation(world.backbone, world.facts) == pytest.approx(expected, rel=0.1)


def test_beta_and_bias_are_found_where_they_matter(world):
    deviation = tune.score_deviation(world.backbone, world.facts)
    by_grid = {
        (spread, bias): quality(world, Weights.uniform(spread / deviation, bias, R))
        for spread in tune.SPREADS[::2]
        for bias in tune.BIASES[::2]
    }
    chosen = quality(world, choose(world))
    assert max(by_grid.values()) > min(by_grid.values()) + 0.02  # they do matter
    assert chosen >= max(by_grid.values())


def test_what_the_settings_have_is_taken(world):
    weights = choose(world, beta=0.25)
    assert float(weights.beta) == 0.25
    assert float(weights.relations[0, 1]) in tune.BIASES
    weights = choose(world, bias=-0.5)
    assert (weights.relations == torch.tensor([1.0, -0.5, 1.0, 0.0])).all()
    assert float(weights.beta) != 0.25


def test_without_flat_queries_the_others_choose(world):
    paths = {"2p": world.queries["2p"]}
    weights = choose(dataclasses.replace(world, queries=paths))
    assert float(weights.beta) > 0


@pytest.mark.parametrize("summit", range(8))
def test_a_summit_is_climbed_from_either_side(summit):
    values = [float(value) for value in range(8)]
    tried = []

    def height(value):
        tried.append(value)
        return -abs(value - summit) / 10 + 0.9

    assert tune._climb(values, height) == summit
    assert len(tried) == len(set(tried))


def test_equal_scores_are_refused(world):
    with pytest.raises(RunError, match="all entities the same score"):
        tune.score_deviation(flat_backbone(), world.facts)


@pytest.mark.parametrize("scale", [1e-20, 1e10])
def test_scores_too_close_or_too_far_apart_are_refused(world, scale):
    extreme = dataclasses.replace(world.backbone, entities=world.backbone.entities * scale)
    with pytest.raises(RunError, match="standard deviation of its scores is"):
        tune.score_deviation(extreme, world.facts)


def test_a_graph_of_one_entity_is_refused_without_a_warning(world, recwarn):
    one = dataclasses.replace(world.backbone, entities=world.backbone.entities[:1])
    with pytest.raises(RunError, match="all entities the same score"):
        tune.score_deviation(one, Facts.of(np.zeros((1, 3), np.int64), 1, R))
    assert not list(recwarn)


def test_scores_that_overflow_are_refused(world):
    huge = dataclasses.replace(world.backbone, entities=world.backbone.entities * 1e30)
    with pytest.raises(RunError, match="not finite numbers"):
        tune.score_deviation(huge, world.facts)


def test_a_graph_without_edges_is_refused(world):
    nothing = Facts.of(np.zeros((0, 3), np.int64), E, R)
    with pytest.raises(RunError, match="the graph has none"):
        tune.score_deviation(world.backbone, nothing)


def loss(world, weights):
    """The mean loss of the flat queries."""
    truth = make_truth(world.backbone, world.facts, settings(), weights)
    losses = []
    for group in world.queries.values():
        if tune.is_flat(group.pattern):
            (questions,) = in_batches(group, 1000, truth.device, 0)
            masks = questions.masks(E)
            scores = tune._flat_truth(truth, questions)
            losses.append(float(listwise_loss(scores, *masks, questions.counts)))
    return sum(losses) / len(losses)


def test_learning_lowers_the_loss(world, monkeypatch):
    monkeypatch.setattr(tune, "EPOCHS", 20)
    start = Weights.uniform(0.1, -1.0, R)
    truth = make_truth(world.backbone, world.facts, settings(), start)
    learnt = tune.learn_weights(truth, world.queries, 0, SILENT)
    assert loss(world, learnt) < loss(world, start) - 0.1
    assert not learnt.relations.requires_grad
    assert not learnt.beta.requires_grad
    assert learnt.relations.std(0).min() > 0  # relations have their own
    again = tune.learn_weights(truth, world.queries, 0, SILENT)
    assert torch.equal(again.relations, learnt.relations)


def test_without_flat_queries_nothing_is_learnt(world):
    start = Weights.uniform(0.1, -1.0, R)
    truth = make_truth(world.backbone, world.facts, settings(), start)
    assert tune.learn_weights(truth, {"2p": world.queries["2p"]}, 0, SILENT) is start


def test_flat_is_what_has_only_edges_between_constants_and_the_answer():
    flat = {name for name, pattern in named_patterns().items() if tune.is_flat(pattern)}
    assert flat == {"1p", "2i", "3i", "4i", "2in", "3in"}
    for formula in ("r(a, ?) & ? != b", "r(?, ?)", "r(a, ?) & !(s(?x, ?) & t(b, ?x))"):
        assert not tune.is_flat(Pattern(parse(formula)))
