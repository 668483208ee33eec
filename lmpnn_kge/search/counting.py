"""How many answers a query has, from the scores of a method and the known answers.

    kept · known + exp(w · x + b),  at most all entities that can be answers

x has log Σ exp(score) of the entities that are not known answers (for search, the logarithm of the
sum of their truths), their best scores at ranks 1, 2, 4, …, log(1 + known), and the numbers of
relations and constants of the query. b differs between kinds of patterns. kept is the share of
known answers that hold: 1 without negation. All of it is fitted on valid queries, so that the
median of predicted / actual is about 1.

The sum of calibrated probabilities, which is right on average, has a far larger error: a few
queries with many answers make it too large for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lmpnn_kge.errors import CalibrationError
from lmpnn_kge.methods.calibration import mapping, numbers
from lmpnn_kge.methods.counting import KNOWN, PREDICTED, Counting
from lmpnn_kge.methods.method import Method
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.search.logic import IMPOSSIBLE
from lmpnn_kge.search.probability import CHUNK, KINDS, kind_of
from lmpnn_kge.search.questions import in_batches

#: The entities that answer queries [n, c] and [n, r] of a pattern by the training edges, [n, E].
Known = Callable[[Pattern, Tensor, Tensor], Tensor]

#: Scores that are looked at: the best one, the second, the fourth and so on.
RANKS = tuple(2**power for power in range(10))

#: The width of `_features`, and the least score that they tell from others.
FEATURES, LEAST = len(RANKS) + 4, -120.0

#: A penalty on squares of weights, for standardised features; and the distance of logarithms below
#: which an error counts quadratically.
RIDGE, SMOOTH = 1.0, 0.1

#: Queries that are answered at once even on a large graph: one alone costs nearly as much.
FEWEST = 16

#: Entities whose scores are converted to doubles at once.
PART = 65_536

#: Iterations of L-BFGS, which usually needs fewer.
ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class AnswerCount:
    """Predicts the number of all answers, known or not, for the scores of one method."""

    weights: Tensor  # [f]
    intercepts: Tensor  # [KINDS]
    kept: Tensor  # [KINDS]

    def __call__(self, pattern: Pattern, scores: Tensor, known: Tensor) -> Tensor:
        """The number of answers by scores [n, E] and known answers [n, E]: [n], in doubles."""
        features, counts, most = _features(pattern, scores, known)
        kinds = torch.full_like(counts, kind_of(pattern), dtype=torch.int64)
        return _predict(self.weights, self.intercepts, self.kept, features, kinds, counts, most)

    @classmethod
    def fit(
        cls, method: Method, queries: Mapping[str, Queries], known: Known | None
    ) -> AnswerCount:
        """Fit to the answers of queries; CalibrationError if there are none.

        Without known answers, only the scores are looked at.
        """
        parts = [
            (
                *_features(pattern, scores, mask),
                torch.full_like(actual, kind_of(pattern)),
                actual.double(),
            )
            for _, pattern, scores, mask, actual in _answered(method, queries, known)
        ]
        if not parts:
            raise CalibrationError("numbers of answers cannot be fitted: there are no queries")
        features, counts, most, kinds, actual = map(torch.cat, zip(*parts, strict=True))
        mean, scale = features.mean(0), features.std(0, correction=0)
        scale = torch.where(scale > 1e-6, scale, 1.0)
        columns = (features - mean) / scale
        theta = features.new_zeros(FEATURES + 2 * KINDS)
        theta[FEATURES : FEATURES + KINDS] = (actual - counts).clamp(min=0.5).log().mean()
        theta.requires_grad_()
        optimiser = torch.optim.LBFGS([theta], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            optimiser.zero_grad()
            weights, intercepts, kept = _parameters(theta)
            predicted = _predict(weights, intercepts, kept, columns, kinds, counts, most)
            distance = predicted.clamp(min=1e-3).log() - actual.log()
            total = (distance**2 + SMOOTH**2).sqrt().sum() + RIDGE * (weights**2).sum()
            total.backward()
            return total

        with torch.enable_grad():
            optimiser.step(loss)
        weights, intercepts, kept = _parameters(theta.detach())
        weights = weights / scale
        return cls(weights, intercepts - weights @ mean, kept)

    @torch.no_grad()
    def measure(
        self,
        method: Method,
        queries: Mapping[str, Queries],
        known: Known | None,
    ) -> Counting:
        """How close the numbers are on queries, and those of known answers, if there are any."""
        columns: dict[str, dict[str, list[Tensor]]] = {"actual": {}, PREDICTED: {}, KNOWN: {}}
        for name, pattern, scores, mask, actual in _answered(method, queries, known):
            columns["actual"].setdefault(name, []).append(actual)
            columns[PREDICTED].setdefault(name, []).append(self(pattern, scores, mask))
            columns[KNOWN].setdefault(name, []).append(mask.sum(1))
        if known is None:
            del columns[KNOWN]
        return Counting.measure(
            {
                row: {
                    name: torch.cat(parts).cpu().double().numpy() for name, parts in types.items()
                }
                for row, types in columns.items()
            }
        )

    def to_json(self) -> dict[str, object]:
        return {name: getattr(self, name).tolist() for name in _SHAPES}

    @classmethod
    def from_json(cls, content: object, source: str, device: torch.device) -> AnswerCount:
        """Read what `to_json` returned; CalibrationError, which names the source, if it is not."""
        fields = mapping(content, tuple(_SHAPES), source)
        values = {name: numbers(fields[name], source) for name in _SHAPES}
        if any(len(values[name]) != width for name, width in _SHAPES.items()):
            raise CalibrationError(f"{source}: the number of answers has other weights")
        tensors = (torch.tensor(v, dtype=torch.float64, device=device) for v in values.values())
        return cls(*tensors)


#: The fields of a file, with their lengths.
_SHAPES = {"weights": FEATURES, "intercepts": KINDS, "kept": KINDS}


def _features(pattern: Pattern, scores: Tensor, known: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a number depends on [n, f], that of known answers [n], and that of possible ones [n].

    All are doubles. An entity that is not known is possible unless its score says that it cannot be
    an answer.
    """
    counts = known.sum(1).double()
    others = scores.masked_fill(known, -torch.inf)
    possible = (others > IMPOSSIBLE).sum(1).double()
    others.clamp_(min=LEAST)
    best = others.topk(min(RANKS[-1], others.shape[1])).values.double()
    # In parts, because doubles of all entities would not fit in the cache of the processor.
    sums = torch.stack([part.double().logsumexp(1) for part in others.split(PART, 1)], 1)
    places = [min(rank, best.shape[1]) - 1 for rank in RANKS]
    of_pattern = best.new_tensor([len(pattern.relations), len(pattern.constants)])
    features = [
        counts.log1p()[:, None],
        sums.logsumexp(1, keepdim=True),
        best[:, places],
        of_pattern.expand(len(scores), -1),
    ]
    return torch.cat(features, 1), counts, possible


def _predict(
    weights: Tensor,
    intercepts: Tensor,
    kept: Tensor,
    features: Tensor,
    kinds: Tensor,
    known: Tensor,
    most: Tensor,
) -> Tensor:
    others = (features @ weights + intercepts[kinds]).clamp(max=30.0).exp()
    return kept[kinds] * known + torch.minimum(others, most)


def _parameters(theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, intercepts, and the shares of known answers that hold: 1 without negation."""
    weights, intercepts, logits = theta.split([FEATURES, KINDS, KINDS])
    negated = torch.arange(KINDS, device=theta.device) % 2 == 1
    return weights, intercepts, torch.where(negated, logits.sigmoid(), 1.0)


@torch.no_grad()
def _answered(
    method: Method, queries: Mapping[str, Queries], known: Known | None
) -> Iterator[tuple[str, Pattern, Tensor, Tensor, Tensor]]:
    """Batches: their type and pattern, scores and known answers [n, E], numbers of answers [n]."""
    size = max(FEWEST, CHUNK // method.num_entities)
    for name, group in queries.items():
        for questions in in_batches(group, size, method.device, seed=0):
            columns = questions.pattern, questions.constants, questions.relations
            scores = method.answer(*columns)(slice(None))
            mask = torch.zeros_like(scores, dtype=torch.bool) if known is None else known(*columns)
            yield name, questions.pattern, scores, mask, questions.totals
