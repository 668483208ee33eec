"""The probability of an edge, by the scores of a backbone and the known edges.

A question (h, r, ?) has a row of scores φ(h, r, ·). With Z the sum of exp φ over the tails that are
not known, the probability of a tail t that is not known is

    p(h, r, t) = c(a_r · log(exp φ(h, r, t) / Z) + w · [log Z, degree of (h, r), of (t, r⁻¹)] + b_r)

a_r, w and b_r are fitted by logistic regression, and c is a calibration, both on valid triples. The
claims are the TOP best tails of questions that are not known from earlier splits, in both
directions. Of which questions, is the choice of a population:

- `asked`: questions that have an answer in the split. This is for people who ask: their question
  has an answer, so p is the probability that t is one.
- `every`: all (h, r) of the known edges. This is for predicting edges that nobody asked for. Most
  of these questions have no other answer, so probabilities are much lower. p is the probability
  that the edge is in any held-out split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.errors import BackboneError, CalibrationError, short
from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.methods.calibration import Calibration, Reliability, mapping, numbers
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.logistic import Logistic

Population = Literal["asked", "every"]

#: The best tails of a question that probabilities are fitted and measured on.
TOP = 10

#: Questions to fit on: with an answer in valid, and without one.
MOST_ASKED, MOST_OTHERS = 20_000, 10_000

#: Scores that are in memory at once; a few temporary tensors have the same size.
CHUNK = 2**21

#: The probability of an edge that is not known is at most this.
CERTAIN = 0.999

#: Features besides the share of the row: log Z, degree of (h, r), is it 0, of (t, r⁻¹), is it 0.
WIDTH = 5


@dataclass(frozen=True, eq=False)
class Claims:
    """Edges that probabilities are fitted or measured on."""

    questions: Tensor  # [n]: the position of each claim's question
    relations: Tensor  # [n]
    features: Tensor  # [n, 1 + WIDTH]
    holds: Tensor  # [n]
    mass: Tensor  # [n]: how many claims each stands for


@dataclass(frozen=True, eq=False)
class EdgeProbability:
    """Probabilities of edges, for one backbone and its known edges."""

    backbone: Backbone
    facts: Facts
    population: Population
    logistic: Logistic
    calibration: Calibration
    facts_hold: bool = True  # known edges have the probability 1

    @classmethod
    def fit(
        cls,
        backbone: Backbone,
        facts: Facts,
        valid: Triples,
        *,
        population: Population = "asked",
        held_out: int | None = None,
        facts_hold: bool = True,
        seed: int = 0,
    ) -> EdgeProbability:
        """Fit on valid triples [n, 3] that are not among the facts.

        held_out is the number of triples in all held-out splits, if there are more than valid; only
        the population `every` needs it. seed decides which questions are taken if there are many.
        """
        if population not in get_args(Population):
            raise CalibrationError(f"there is no population {short(population)!r}")
        truth = _facts_of(valid, facts)
        if not len(truth):
            raise CalibrationError(
                "there are no valid triples, so probabilities cannot be fitted; use a dataset with "
                "a valid split (`lmpnn-kge split` makes one)"
            )
        generator = torch.Generator().manual_seed(seed)
        unfitted = cls(backbone, facts, population, _zero(backbone), Calibration((0.0,), (0.0,)))
        claims = unfitted._claims(truth, facts, generator)
        _check(claims)
        logistic, calibration = _fitted(claims, 2 * backbone.num_relations, generator)
        if population == "every":
            calibration = calibration.scaled(max(1.0, (held_out or 0) / len(valid)), CERTAIN)
        device = backbone.device
        logistic = Logistic(*(t.float().to(device) for t in vars(logistic).values()))
        return cls(backbone, facts, population, logistic, calibration, facts_hold)

    def rows(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The probabilities of edges from heads [m] by relations [m] to every entity, [m, E]."""
        keys = self.facts.keys_of(heads, relations)
        rows = self.calibration(self.logits(keys)) if len(keys) else self._no_rows()
        if self.facts_hold:
            rows[self.facts.tails_of(keys)] = 1.0
        return rows

    def at(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """The probability of each edge (h, r, t), [m]."""
        keys = self.facts.keys_of(heads, relations)
        distinct, places = keys.unique(return_inverse=True)
        scores, normaliser = heads.new_empty(len(keys), dtype=torch.float32), []
        first = 0
        for part in distinct.split(self.chunk):
            row_scores, row_normaliser = self._scored(part, self.facts)
            inside = (places >= first) & (places < first + len(part))
            scores[inside] = row_scores[places[inside] - first, tails[inside]]
            normaliser.append(row_normaliser)
            first += len(part)
        if not normaliser:
            return scores
        features = self._features(keys, tails, scores, torch.cat(normaliser)[places])
        probabilities = self.calibration(self.logistic(features, relations))
        if self.facts_hold:
            probabilities[self.facts.hold(keys, tails)] = 1.0
        return probabilities

    def logits(self, keys: Tensor) -> Tensor:
        """What the calibration makes probabilities of: rows of keys [m] of the facts, [m, E]."""
        scores, normaliser = self._scored(keys, self.facts)
        relations = keys % (2 * self.facts.num_relations)
        degree = self.facts.count(keys)
        weights, slope = self.logistic.weights, self.logistic.slopes[relations]
        row = torch.stack([normaliser, degree.float().log1p(), (degree == 0).float()], 1)
        shift = row @ weights[:3] + self.logistic.intercepts[relations] - slope * normaliser
        distinct, places = relations.unique(return_inverse=True)
        degrees = self.facts.tail_counts(distinct)
        tails = weights[3] * degrees.log1p() + weights[4] * (degrees == 0)
        logits = torch.addcmul(shift[:, None], slope[:, None], scores, out=scores)
        return logits.add_(tails if len(distinct) == 1 else tails[places])

    def measure(
        self, triples: Triples, known: Facts | None = None, *, share: float = 1.0, seed: int = 0
    ) -> Reliability:
        """Reliability on the triples of a split, for the questions of the population.

        `measure_both` explains the arguments.
        """
        return self.measure_both(triples, known, share=share, seed=seed)[0]

    @torch.inference_mode()
    def measure_both(
        self, triples: Triples, known: Facts | None = None, *, share: float = 1.0, seed: int = 0
    ) -> tuple[Reliability, Reliability]:
        """Reliability on the triples of a split, and that of plain sigmoids of the same scores.

        known has the edges of all earlier splits, if these are more than the facts. share is the
        part of the held-out triples that the split has, which is for the population `every`.
        """
        truth = _facts_of(triples, self.facts)
        if not len(truth):
            raise CalibrationError("there are no triples to measure probabilities on")
        claims = self._claims(truth, known or self.facts, torch.Generator().manual_seed(seed))
        features, relations = claims.features.float(), claims.relations
        logits = self.logistic(features.to(self._device), relations.to(self._device))
        probabilities = self.calibration(logits).cpu() * share
        # The first two features are the share of a score in its row, and log Z of the row.
        sigmoids = claims.features[:, :2].sum(1).sigmoid()
        holds, mass = claims.holds.numpy(), claims.mass.numpy()
        measured, raw = (
            Reliability.measure(values.numpy(), holds, mass) for values in (probabilities, sigmoids)
        )
        return measured, raw

    def to_json(self) -> dict[str, object]:
        """Everything that was fitted."""
        return {
            "population": self.population,
            "facts_hold": self.facts_hold,
            **{name: tensor.tolist() for name, tensor in vars(self.logistic).items()},
            "calibration": self.calibration.to_json(),
        }

    @classmethod
    def from_json(
        cls, content: object, source: str, backbone: Backbone, facts: Facts
    ) -> EdgeProbability:
        """Read what `to_json` returned; CalibrationError, which names the source, if it is not."""
        names = ("weights", "slopes", "intercepts")
        fields = mapping(content, ("population", "facts_hold", *names, "calibration"), source)
        if fields["population"] not in get_args(Population):
            raise CalibrationError(
                f"{source}: there is no population {short(fields['population'])}"
            )
        if not isinstance(fields["facts_hold"], bool):
            raise CalibrationError(f"{source}: {short(fields['facts_hold'])} is not true or false")
        lists = [numbers(fields[name], source) for name in names]
        groups = 2 * backbone.num_relations
        if [len(values) for values in lists] != [WIDTH, groups, groups]:
            raise CalibrationError(f"{source} was fitted on another embedding")
        if min(lists[1]) <= 0:
            raise CalibrationError(f"{source}: a slope is not positive")
        logistic = Logistic(*(backbone.relations.new_tensor(values).float() for values in lists))
        calibration = Calibration.from_json(fields["calibration"], source)
        return cls(
            backbone, facts, fields["population"], logistic, calibration, fields["facts_hold"]
        )

    @property
    def _device(self) -> torch.device:
        return self.backbone.device

    @property
    def chunk(self) -> int:
        """Rows of scores that should be in memory at once, at most."""
        return max(1, CHUNK // self.backbone.num_entities)

    def _no_rows(self) -> Tensor:
        return torch.empty(0, self.backbone.num_entities, device=self._device)

    def _scored(self, keys: Tensor, known: Facts) -> tuple[Tensor, Tensor]:
        """The scores of rows, [m, E], and log Z over the tails that are not known, [m].

        An entity is no tail of itself if the relation has no known edge of that form: it scores −∞.
        """
        width = 2 * self.facts.num_relations
        heads, relations = keys // width, keys % width
        scores = self.backbone.score_tails(heads, relations).float()
        rows = (~self.facts.loops[relations]).nonzero()[:, 0]
        scores[rows, heads[rows]] = -torch.inf
        known_tails = known.tails_of(keys)
        kept = scores[known_tails]
        scores[known_tails] = -torch.inf
        normaliser = scores.logsumexp(1)
        if not (normaliser < torch.inf).all():  # NaN included
            raise BackboneError("scores overflow: the tables have numbers that are too large")
        scores[known_tails] = kept
        return scores, normaliser.nan_to_num(neginf=0.0)  # a row may have no unknown tail

    def _features(self, keys: Tensor, tails: Tensor, scores: Tensor, normaliser: Tensor) -> Tensor:
        """The features of edges: keys, tails, scores and log Z, [m] each -> [m, 1 + WIDTH]."""
        inverse = self.backbone.inverse(keys % (2 * self.facts.num_relations))
        out, into = self.facts.count(keys), self.facts.count(self.facts.keys_of(tails, inverse))
        return torch.stack([
            scores - normaliser,
            normaliser,
            out.float().log1p(), (out == 0).float(),
            into.float().log1p(), (into == 0).float(),
        ], 1)  # fmt: skip

    @torch.inference_mode()
    def _claims(self, truth: Facts, known: Facts, generator: torch.Generator) -> Claims:
        """The best unknown tails of the questions of the population, and whether they hold."""
        asked = truth.keys
        parts = [(asked, MOST_ASKED)]
        if self.population == "every":
            seen = self.facts.keys
            parts = [(asked[torch.isin(asked, seen)], MOST_ASKED)]
            parts.append((seen[~torch.isin(seen, asked)], MOST_OTHERS))
        columns: list[tuple[Tensor, ...]] = []
        count = 0
        for keys, most in parts:
            chosen = torch.randperm(len(keys), generator=generator)[:most].to(keys.device)
            mass = len(keys) / max(1, len(chosen))
            for part in keys[chosen].sort().values.split(self.chunk):
                rows, tails, scores, normaliser = self._best(part, known)
                claimed = part[rows]
                columns.append((
                    rows + count,
                    claimed % (2 * self.facts.num_relations),
                    self._features(claimed, tails, scores, normaliser[rows]),
                    truth.hold(claimed, tails),
                    torch.full_like(scores, mass),
                ))  # fmt: skip
                count += len(part)
        joined = [torch.cat(column).cpu() for column in zip(*columns, strict=True)]
        questions, relations, features, holds, mass_ = joined
        return Claims(questions, relations, features.double(), holds.double(), mass_.double())

    def _best(self, keys: Tensor, known: Facts) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The best tails of rows [m] that are not known: row, tail and score; log Z of each row."""
        scores, normaliser = self._scored(keys, known)
        scores[known.tails_of(keys)] = -torch.inf
        best = scores.topk(min(TOP, scores.shape[1]))
        rows, places = best.values.isfinite().nonzero(as_tuple=True)
        return rows, best.indices[rows, places], best.values[rows, places], normaliser


def _facts_of(triples: Triples, facts: Facts) -> Facts:
    """Triples that are not among the facts, as facts of the same graph on the same device."""
    own = Facts.of(triples, facts.num_entities, facts.num_relations).to(facts.keys.device)
    keys = torch.repeat_interleave(own.keys, own.offsets.diff())
    width = 2 * facts.num_relations
    new = ~facts.hold(keys, own.tails) & (keys % width < facts.num_relations)
    columns = keys[new] // width, keys[new] % width, own.tails[new]
    rest = torch.stack(columns, 1).cpu().numpy().astype(np.int64)
    return Facts.of(rest, facts.num_entities, facts.num_relations).to(facts.keys.device)


def _zero(backbone: Backbone) -> Logistic:
    zeros = backbone.relations.new_zeros
    return Logistic(
        zeros(WIDTH), zeros(2 * backbone.num_relations), zeros(2 * backbone.num_relations)
    )


def _check(claims: Claims) -> None:
    if not len(claims.holds):
        raise CalibrationError("every edge is known, so probabilities cannot be fitted")
    shares = claims.features[:, 0]
    same = claims.questions.diff() == 0
    if not (shares.diff()[same] != 0).any():
        raise CalibrationError(
            "the embedding gives all tails the same score, so it has no probabilities; use a "
            "checkpoint that was trained"
        )


def _fitted(
    claims: Claims, groups: int, generator: torch.Generator
) -> tuple[Logistic, Calibration]:
    """The regression on all claims, and a calibration of logits of questions not fitted on.

    Each half of the questions gets its logits from a regression on the other half, because a
    regression is too sure of the claims that it was fitted on.
    """
    half = torch.randint(2, (int(claims.questions[-1]) + 1,), generator=generator)[claims.questions]
    logits = torch.empty_like(claims.mass)
    for number in (0, 1):
        logistic = _regression(claims, half != number, groups)
        own = half == number
        logits[own] = logistic(claims.features[own], claims.relations[own])
    calibration = Calibration.fit(logits.numpy(), claims.holds.numpy(), claims.mass.numpy())
    return _regression(claims, torch.ones_like(half, dtype=torch.bool), groups), calibration


def _regression(claims: Claims, chosen: Tensor, groups: int) -> Logistic:
    if not chosen.any():
        chosen = torch.ones_like(chosen)
    return Logistic.fit(
        claims.features[chosen],
        claims.relations[chosen],
        claims.holds[chosen],
        claims.mass[chosen],
        groups,
    )
