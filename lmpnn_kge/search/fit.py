"""Search and hybrid, fitted to a backbone and its graph on valid queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.errors import CalibrationError, RunError, one_line
from lmpnn_kge.methods.calibration import mapping, numbers
from lmpnn_kge.methods.method import Method
from lmpnn_kge.methods.names import HYBRID
from lmpnn_kge.methods.rank import capped
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.hybrid import Hybrid, find_candidates
from lmpnn_kge.search.logic import Logic
from lmpnn_kge.search.probability import AnswerProbability
from lmpnn_kge.search.questions import in_batches
from lmpnn_kge.search.rerank import Lesson, Reranker, train_reranker
from lmpnn_kge.search.search import Search
from lmpnn_kge.search.solve import Solver
from lmpnn_kge.search.truth import EdgeTruth, Weights
from lmpnn_kge.search.tune import choose_weights, learn_weights, score_deviation
from lmpnn_kge.settings.kinds import SearchSettings
from lmpnn_kge.work.listener import Listener

#: Queries per type that the order of answers is learnt from, and others that probabilities are
#: fitted on.
LESSONS, CLAIMING = 1500, 300

#: Queries that are searched at once, and that a step of learning sees.
SEARCHED, STEP = 256, 64


@dataclass(frozen=True, eq=False)
class Fit:
    """What was fitted for one method."""

    weights: Weights
    reranker: Reranker | None  # of hybrid
    probability: AnswerProbability | None  # None if valid queries do not suffice

    @property
    def is_finite(self) -> bool:
        learnt = [] if self.reranker is None else list(self.reranker.parameters())
        tensors = [self.weights.beta, self.weights.relations, *learnt]
        return all(bool(tensor.isfinite().all()) for tensor in tensors)

    def method(self, backbone: Backbone, facts: Facts, settings: SearchSettings) -> Method:
        """The method, ready to answer."""
        search = make_search(backbone, facts, settings, self.weights)
        return search if self.reranker is None else Hybrid(search, self.reranker)

    def to_json(self) -> dict[str, Any]:
        parameters = {} if self.reranker is None else self.reranker.state_dict()
        return {
            "beta": self.weights.beta.item(),
            "relations": self.weights.relations.tolist(),
            "reranker": {name: value.tolist() for name, value in parameters.items()},
            "probability": None if self.probability is None else self.probability.to_json(),
        }

    @classmethod
    def from_json(
        cls, name: str, content: object, source: str, num_relations: int, device: torch.device
    ) -> Fit:
        """Read what `to_json` returned; CalibrationError, which names the source, if it is not."""
        fields = mapping(content, ("beta", "relations", "reranker", "probability"), source)
        beta = _tensor(fields["beta"], torch.Size([]), source)
        if not beta > 0:
            raise CalibrationError(f"{source}: beta must be greater than 0")
        shape = torch.Size([2 * num_relations, 4])
        relations = _tensor(fields["relations"], shape, source)
        reranker = None
        if name == HYBRID:
            reranker = Reranker(num_relations).to(device)
            expected = reranker.state_dict()
            given = mapping(fields["reranker"], tuple(expected), source)
            reranker.load_state_dict(
                {
                    name: _tensor(given[name], value.shape, source)
                    for name, value in expected.items()
                }
            )
        probability = fields["probability"]
        if probability is not None:
            probability = AnswerProbability.from_json(probability, source, device)
        weights = Weights(beta, relations).to(device)
        return cls(weights, reranker, probability)


def fit(
    name: str,
    backbone: Backbone,
    facts: Facts,
    queries: Mapping[str, Queries],
    settings: SearchSettings,
    listener: Listener,
) -> Fit:
    """Fit `search` or `hybrid` on valid queries that have hard answers.

    Without queries, search takes β and b from the settings, and has no probabilities.
    """

    def make(weights: Weights) -> Search:
        return make_search(backbone, facts, settings, weights)

    deviation = score_deviation(backbone, facts)
    for_claims = {n: group.select(held_out(len(group))) for n, group in queries.items()}
    for_learning = {n: group.select(~held_out(len(group))) for n, group in queries.items()}
    if settings.beta is not None and settings.bias is not None:
        weights = Weights.uniform(settings.beta, settings.bias, facts.num_relations)
    elif not queries:
        raise RunError(
            f"{name} is fitted on valid queries, and there are none; give beta and bias yourself, "
            "for example with --set beta=0.5 --set bias=-1"
        )
    else:
        weights = choose_weights(
            make, deviation, facts.num_relations, for_learning, settings, listener
        )
    weights = weights.to(facts.keys.device)
    reranker = None
    if name == HYBRID:
        if not queries:
            raise RunError("hybrid learns on valid queries, and there are none; use search")
        truth = make_truth(backbone, facts, settings, weights)
        weights = learn_weights(truth, for_learning, settings.seed, listener)
        lessons = make_lessons(make(weights), for_learning, settings.seed, listener)
        reranker = train_reranker(lessons, facts.num_relations, settings.seed, listener)
    fitted = Fit(weights, reranker, None)
    if not fitted.is_finite:
        raise RunError(
            f"{name} cannot use this embedding: some scores are so large that what is learnt from "
            "them is not a finite number"
        )
    if not queries:
        return fitted
    try:
        method = fitted.method(backbone, facts, settings)
        return replace(fitted, probability=AnswerProbability.fit(method, for_claims))
    except CalibrationError as error:
        listener.note(f"{one_line(error)}; answers have no probability")
        return fitted


def make_search(
    backbone: Backbone, facts: Facts, settings: SearchSettings, weights: Weights
) -> Search:
    """Search with these weights."""
    truth = make_truth(backbone, facts, settings, weights)
    logic = Logic(settings.t_norm, settings.exists)
    return Search(Solver(truth, logic, settings.beam, settings.guesses, settings.tries))


def make_truth(
    backbone: Backbone, facts: Facts, settings: SearchSettings, weights: Weights
) -> EdgeTruth:
    """The truth of edges with these weights."""
    return EdgeTruth(backbone, facts, weights, certain=settings.facts == "known")


@torch.no_grad()
def make_lessons(
    search: Search, queries: Mapping[str, Queries], seed: int, listener: Listener
) -> list[Lesson]:
    """Candidates of queries, with the answers among them, for a few queries each."""
    chosen = capped(queries, LESSONS)
    listener.begin("searching valid queries", sum(map(len, chosen.values())))
    lessons = []
    for group in chosen.values():
        for questions in in_batches(group, SEARCHED, search.device, seed):
            columns = questions.constants, questions.relations
            candidates, _, _ = find_candidates(search, questions.pattern, *columns)
            hard, easy = (
                mask.gather(1, candidates.entities) for mask in questions.masks(search.num_entities)
            )
            lesson = Lesson(candidates, hard, easy, questions.counts)
            rows = torch.arange(len(questions), device=search.device)
            lessons += [lesson.at(part) for part in rows.split(STEP)]
            listener.advance(len(questions))
    return lessons


def held_out(count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """A mask of queries that probabilities are fitted on: every fifth, at most `CLAIMING`.

    A single query is not held out, because something must be learnt from.
    """
    step = max(5, -(-count // CLAIMING))
    return (np.arange(count) % step == 0) & (count > 1)


def _tensor(content: object, shape: torch.Size, source: str) -> Tensor:
    """A tensor from nested lists; CalibrationError if it does not have this shape."""
    rows = content if isinstance(content, list) else [content]
    if len(shape) > 1:
        if len(rows) != shape[0]:
            raise CalibrationError(f"{source}: a table has {len(rows)} rows and not {shape[0]}")
        return torch.stack([_tensor(row, shape[1:], source) for row in rows])
    values = numbers(rows, source)
    if len(values) != shape.numel():
        raise CalibrationError(f"{source}: a row has {len(values)} numbers, not {shape.numel()}")
    tensor = torch.tensor(values).view(shape)
    if not tensor.isfinite().all():
        raise CalibrationError(f"{source}: a number is too large")
    return tensor
