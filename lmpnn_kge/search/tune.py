"""The weights of the truth of edges, fitted on valid queries.

The likelihood of held-out edges is the wrong measure: it wants sharper truths than queries do. So
β and b are chosen by how well search answers valid queries. The weights of each relation are then
learnt from valid queries without existential variables, by the gradient of their ranking.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.errors import RunError
from lmpnn_kge.methods.rank import capped, evaluate
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.formula import FREE, Atom, Constant
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.logic import Logic
from lmpnn_kge.search.questions import Questions, in_batches, listwise_loss
from lmpnn_kge.search.search import Search, make_batch
from lmpnn_kge.search.solve import Solver
from lmpnn_kge.search.truth import EdgeTruth, Weights
from lmpnn_kge.settings.kinds import SearchSettings
from lmpnn_kge.work.listener import Listener

#: β is tried so that the standard deviation of a row's logits has one of these values.
SPREADS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6)

BIASES = (-3.0, -2.0, -1.0, 0.0)

#: Rows whose scores are measured.
SAMPLE = 256

#: Queries per type that choose β and b, and that the weights of relations are learnt from.
FEW, MANY = 50, 2500

#: Standard deviations of a row's scores that β can make up for in single precision.
LEAST, MOST = 1e-12, 1e12

EPOCHS, BATCH, RATE, DECAY = 2, 64, 0.03, 0.005

#: Learnt weights begin with a β this much larger, because each relation has a slope of its own.
STEEPER = 2.0


def score_deviation(backbone: Backbone, facts: Facts) -> float:
    """The standard deviation of the scores of a row; RunError if it cannot be used."""
    if not len(facts):
        raise RunError("search needs training edges, and the graph has none")
    step = max(1, len(facts.keys) // SAMPLE)
    keys, width = facts.keys[::step][:SAMPLE], 2 * facts.num_relations
    scores = backbone.score_tails(keys // width, keys % width)
    deviation = scores.std(1).mean().item() if backbone.num_entities > 1 else 0.0
    if not math.isfinite(deviation):
        raise RunError("search cannot use this embedding: its scores are not finite numbers")
    if deviation == 0:
        raise RunError(
            "search cannot use this embedding: it gives all entities the same score, so nothing "
            "can be ranked by it"
        )
    if not LEAST <= deviation <= MOST:
        raise RunError(
            f"search cannot use this embedding: the standard deviation of its scores is "
            f"{deviation:.0e}, but must be between {LEAST:.0e} and {MOST:.0e}"
        )
    return deviation


def choose_weights(
    make: Callable[[Weights], Search],
    deviation: float,
    num_relations: int,
    queries: Mapping[str, Queries],
    settings: SearchSettings,
    listener: Listener,
) -> Weights:
    """β and b with which search answers queries best, unless the settings have them."""
    flat = {name: group for name, group in queries.items() if is_flat(group.pattern)}
    listener.begin("fitting the truth of edges", len(SPREADS) + len(BIASES))

    def quality(beta: float, bias: float, few: Mapping[str, Queries]) -> float:
        listener.advance(1)
        return evaluate(make(Weights.uniform(beta, bias, num_relations)), few, "valid").mean

    beta, bias = settings.beta, settings.bias
    if beta is None:
        # Queries without variables choose nearly the same β as all queries, ten times as fast.
        few = capped(flat, 10 * FEW) if flat else capped(queries, FEW)
        start = BIASES[1] if bias is None else bias
        betas = [spread / deviation for spread in SPREADS]
        beta = _climb(betas, lambda candidate: quality(candidate, start, few))
    if bias is None:
        few = capped(queries, FEW)
        bias = _climb([*BIASES], lambda candidate: quality(beta, candidate, few))
    return Weights.uniform(beta, bias, num_relations)


def _climb(values: list[float], quality: Callable[[float], float]) -> float:
    """The best of ascending values with one summit, from the middle upwards or downwards."""
    found: dict[int, float] = {}

    def at(position: int) -> float:
        if position not in found:
            found[position] = quality(values[position]) if 0 <= position < len(values) else -1.0
        return found[position]

    here = len(values) // 2
    while max(at(here - 1), at(here + 1)) > at(here):
        here += 1 if at(here + 1) > at(here - 1) else -1
    return values[here]


def learn_weights(
    truth: EdgeTruth, queries: Mapping[str, Queries], seed: int, listener: Listener
) -> Weights:
    """Weights for each relation, from queries that have only edges from constants to `?`.

    Without such queries, the weights stay as they are.
    """
    flat = {n: group for n, group in capped(queries, MANY).items() if is_flat(group.pattern)}
    batches = [b for group in flat.values() for b in in_batches(group, BATCH, truth.device, seed)]
    if not batches:
        return truth.weights
    random = torch.Generator().manual_seed(seed)
    start = truth.weights.relations
    log_beta = (STEEPER * truth.weights.beta).log().requires_grad_()
    common = torch.zeros(start.shape[1], device=start.device, requires_grad=True)
    own = torch.zeros_like(start, requires_grad=True)
    optimiser = torch.optim.Adam([common, own, log_beta], lr=RATE)
    steps = EPOCHS * len(batches)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    listener.begin("learning the truth of edges", steps)
    for _ in range(EPOCHS):
        for position in torch.randperm(len(batches), generator=random).tolist():
            questions = batches[position]
            tuned = replace(truth, weights=Weights(log_beta.exp(), start + common + own))
            scores = _flat_truth(tuned, questions)
            hard, easy = questions.masks(scores.shape[1])
            loss = listwise_loss(scores, hard, easy, questions.counts)
            loss = loss + DECAY / len(batches) * own.square().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            listener.advance(1)
    return Weights(log_beta.detach().exp(), (start + common + own).detach())


def is_flat(pattern: Pattern) -> bool:
    """Whether a pattern is a conjunction of edges and denied edges from constants to `?`."""
    disjuncts = pattern.disjuncts
    return (
        len(disjuncts) == 1
        and all(
            isinstance(literal.atom, Atom)
            and FREE in literal.terms
            and any(isinstance(term, Constant) for term in literal.terms)
            for literal in disjuncts[0].literals
        )
        and not (disjuncts[0].groups or disjuncts[0].bound)
    )


def _flat_truth(truth: EdgeTruth, questions: Questions) -> Tensor:
    """The log truth of all entities for flat queries, [n, E], with a gradient."""
    solver = Solver(truth, Logic("product", "max"), 1, 1, 1)
    batch = make_batch(questions.pattern, questions.constants, questions.relations)
    (conjunct,) = questions.pattern.disjuncts
    return solver.solve(conjunct, batch, FREE)
