"""The probability that an entity answers a query, from the scores of a method.

A score by itself does not say how probable an answer is: the others matter. A logistic regression
sees the score, its share among the best scores and its distance from the best one. What it finds is
calibrated. Both are fitted on valid queries: the claims are the 10 best entities of each query that
do not answer it by known edges, and a claim holds if it is a hard answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lmpnn_kge.errors import CalibrationError
from lmpnn_kge.methods.calibration import Calibration, Reliability, mapping, numbers
from lmpnn_kge.methods.method import Method
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.formula import has_negation
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.search.logistic import Logistic
from lmpnn_kge.search.questions import in_batches

#: Claims of each query, and scores that a share is a share of.
CLAIMS, BEST = 10, 64

#: Kinds of patterns: with or without a disjunction, variables, negation.
KINDS = 8

#: Scores that are in memory at once.
CHUNK = 2**22


@dataclass(frozen=True, eq=False)
class AnswerProbability:
    """Probabilities for the answers of one method."""

    logistic: Logistic
    calibration: Calibration

    def __call__(self, pattern: Pattern, scores: Tensor, known: Tensor, entities: Tensor) -> Tensor:
        """The probabilities of entities [n, k], by scores [n, E]; known answers [n, E] have none.

        What is computed for a known answer means nothing.
        """
        features = _features(scores, known, entities)
        kinds = torch.full((features[..., 0].numel(),), kind_of(pattern), device=scores.device)
        logits = self.logistic(features.flatten(0, 1), kinds)
        return self.calibration(logits).view(entities.shape)

    @classmethod
    def fit(cls, method: Method, queries: Mapping[str, Queries]) -> AnswerProbability:
        """Fit to the claims that a method makes on queries; CalibrationError if it makes none."""
        features, kinds, holds = _claims(method, queries)
        if not len(holds):
            raise CalibrationError(
                "the probability of answers cannot be fitted: there are too few valid queries"
            )
        if not 0 < holds.sum() < len(holds):
            raise CalibrationError(
                "the probability of answers cannot be fitted: of the best answers to valid queries "
                f"{'all' if holds.any() else 'none'} hold"
            )
        mass = torch.ones_like(holds)
        logistic = Logistic.fit(features, kinds, holds, mass, KINDS)
        calibration = Calibration.fit(logistic(features, kinds).cpu().numpy(), holds.cpu().numpy())
        return cls(logistic, calibration)

    @torch.no_grad()
    def measure(self, method: Method, queries: Mapping[str, Queries]) -> Reliability:
        """How reliable the probabilities are on queries."""
        features, kinds, holds = _claims(method, queries)
        probabilities = self.calibration(self.logistic(features, kinds))
        return Reliability.measure(probabilities.cpu().numpy(), holds.cpu().numpy())

    def to_json(self) -> dict[str, object]:
        return {
            "weights": self.logistic.weights.tolist(),
            "slopes": self.logistic.slopes.tolist(),
            "intercepts": self.logistic.intercepts.tolist(),
            "calibration": self.calibration.to_json(),
        }

    @classmethod
    def from_json(cls, content: object, source: str, device: torch.device) -> AnswerProbability:
        """Read what `to_json` returned; CalibrationError, which names the source, if it is not."""
        names = ("weights", "slopes", "intercepts")
        fields = mapping(content, (*names, "calibration"), source)
        tensors = [
            torch.tensor(numbers(fields[name], source), dtype=torch.float64, device=device)
            for name in names
        ]
        if [len(tensor) for tensor in tensors] != [FEATURES - 1, KINDS, KINDS]:
            raise CalibrationError(f"{source}: the probability of answers has other weights")
        return cls(Logistic(*tensors), Calibration.from_json(fields["calibration"], source))


#: The width of `_features`.
FEATURES = 3


def _features(scores: Tensor, known: Tensor, entities: Tensor) -> Tensor:
    """What a probability depends on, [n, k, FEATURES] in doubles."""
    scores = scores.double()
    best = scores.masked_fill(known, -torch.inf).topk(min(BEST, scores.shape[1])).values
    own = scores.gather(1, entities)
    columns = own - best.logsumexp(1, keepdim=True), own, own - best[:, :1]
    return torch.stack(columns, -1).nan_to_num(neginf=-1e3, posinf=1e3).clamp(-1e3, 1e3)


def kind_of(pattern: Pattern) -> int:
    """The kind of a pattern, below KINDS; odd with negation."""
    disjuncts = pattern.disjuncts
    negated = has_negation(pattern.formula)
    variables = any(c.bound or any(group.bound for group in c.groups) for c in disjuncts)
    return 4 * (len(disjuncts) > 1) + 2 * variables + negated


@torch.no_grad()
def _claims(method: Method, queries: Mapping[str, Queries]) -> tuple[Tensor, Tensor, Tensor]:
    """Features [m, f] and kinds [m] of all claims, and whether each holds [m]."""
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    size = max(1, CHUNK // method.num_entities)
    for group in queries.values():
        for questions in in_batches(group, size, method.device, seed=0):
            answer = method.answer(questions.pattern, questions.constants, questions.relations)
            scores = answer(slice(None))
            hard, easy = questions.masks(method.num_entities)
            claims = scores.masked_fill(easy, -torch.inf).topk(min(CLAIMS, scores.shape[1])).indices
            chosen = ~easy.gather(1, claims)
            features = _features(scores, easy, claims)[chosen]
            kinds = torch.full((len(features),), kind_of(group.pattern), device=scores.device)
            parts.append((features, kinds, hard.gather(1, claims)[chosen].double()))
    if not parts:
        nothing = torch.zeros(0, dtype=torch.float64)
        return nothing.view(0, FEATURES), nothing.long(), nothing
    columns: Iterable[tuple[Tensor, ...]] = zip(*parts, strict=True)
    features, kinds, holds = map(torch.cat, columns)
    return features, kinds, holds
