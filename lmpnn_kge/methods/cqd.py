"""CQD: queries answered by the scores of an embedding, with no training (Arakelyan et al., 2021).

The truth of a query is that of its literals, joined by a t-norm, and entities are ranked by the
truth of the query for them. The existential variables get their values by optimisation in the space
of embeddings, or by beam search over entities. A negated literal has the truth 1 − ψ, which the
LMPNN paper calls CQD(E).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.messages import ScoreType
from lmpnn_kge.errors import QueryError, RunError
from lmpnn_kge.methods.clauses import Clause, Fuzzy, Values, measured_margin
from lmpnn_kge.methods.fuzzy import T_NORMS, conjoin, disjoin
from lmpnn_kge.methods.method import Scores
from lmpnn_kge.query.formula import FREE, Variable
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.settings.kinds import CqdSettings
from lmpnn_kge.work.deadline import check_time

if TYPE_CHECKING:
    from typing_extensions import Self

#: Truth values of beams that are in memory at once.
CHUNK = 2**22

#: The largest gradient. Adam squares it, and that of denying a near certainty is unbounded.
STEEPEST = 1e15


@dataclass(frozen=True, eq=False)
class _Decomposed:
    """The common part of both methods: fuzzy truth on a backbone."""

    fuzzy: Fuzzy
    settings: CqdSettings

    streamed = None

    @classmethod
    def of(cls, backbone: Backbone, settings: CqdSettings) -> Self:
        """The method on a backbone, with a margin that is given or measured."""
        margin = settings.margin
        if margin is None:
            margin = measured_margin(backbone, settings.seed)
        norm = T_NORMS[settings.t_norm]
        return cls(Fuzzy(backbone, norm, settings.scale, margin), settings)

    @property
    def num_entities(self) -> int:
        return self.fuzzy.backbone.num_entities

    @property
    def device(self) -> torch.device:
        return self.fuzzy.backbone.device


class Cqd(_Decomposed):
    """CQD(E), a `Method`: Adam moves the variables through the space of embeddings."""

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """Scores of queries [n, c] and [n, r], whose variables are optimised all at once."""
        clauses = self.fuzzy.clauses(pattern, constants, relations)
        optima = [self.optimise(clause) for clause in clauses]

        @torch.inference_mode()
        def scores(rows: slice, out: Tensor | None = None) -> Tensor:
            chosen = torch.arange(len(constants), device=constants.device)[rows]
            parts = [clause.at(chosen) for clause in clauses]
            points = [
                {variable: z[rows] for variable, z in values.items() if variable != FREE}
                for values in optima
            ]
            return self.fuzzy.ranking(parts, points)

        return scores

    def optimise(self, clause: Clause) -> dict[Variable, Tensor]:
        """The values of the variables for which a clause is truest, [n, d] each.

        "There is no path" is false if any entity makes a path. The variables of a denied group are
        therefore moved to where the group is truest, which makes the clause less true. Without
        existential variables nothing is optimised, because `?` takes every entity in turn.
        """
        signs = dict(clause.variables())
        if not signs:
            return {}
        signs[FREE] = 1
        settings, backbone = self.settings, self.fuzzy.backbone
        random = torch.Generator().manual_seed(settings.seed)
        start = torch.randn(len(signs), 1, backbone.dim, generator=random).to(backbone.relations)
        size = backbone.typical_number()
        points = (size * start).repeat(1, clause.size, 1).requires_grad_()
        ascent = torch.tensor([*signs.values()], device=self.device).view(-1, 1, 1)
        optimiser = torch.optim.Adam([points], lr=settings.learning_rate, fused=True, maximize=True)
        for _ in range(settings.steps):
            values = dict(zip(signs, points, strict=True))
            truth = self.log_truth(clause, values).sum()
            (gradient,) = torch.autograd.grad(truth, points)
            steep = ascent * gradient.clamp(-STEEPEST, STEEPEST)
            points.grad = steep - self._pull(points)
            optimiser.step()
        optimum = points.detach()
        if not optimum.isfinite().all():
            raise RunError("the variables' embeddings are not finite; lower learning_rate")
        return dict(zip(signs, optimum, strict=True))

    def log_truth(self, clause: Clause, values: Values) -> Tensor:
        """The logarithm of the truth of a clause whose variables all have values, [n]."""
        return self.fuzzy.norm.log(self.fuzzy.truth(clause, values))[:, 0]

    def _pull(self, points: Tensor) -> Tensor | float:
        """The gradient of the penalty |x|³: without it, an inner product grows without limit."""
        if self.fuzzy.backbone.score_type is not ScoreType.INNER_PRODUCT:
            return 0.0
        now = points.detach()
        return 3 * self.settings.penalty * now * now.abs()


class CqdBeam(_Decomposed):
    """CQD-Beam, a `Method`: each variable takes the entities that are best so far, one by one."""

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """Scores of queries [n, c] and [n, r], searched for a few rows at a time."""
        clauses = self.fuzzy.clauses(pattern, constants, relations)
        width = self.settings.beam ** max(clause.nesting for clause in clauses)
        size = max(1, CHUNK // (width * self.num_entities))

        @torch.inference_mode()
        def scores(rows: slice, out: Tensor | None = None) -> Tensor:
            chosen = torch.arange(len(constants), device=constants.device)[rows]
            return torch.cat([self._answer(clauses, part) for part in chosen.split(size)])

        return scores

    def _answer(self, clauses: list[Clause], rows: Tensor) -> Tensor:
        parts = [clause.at(rows) for clause in clauses]
        if not any(clause.nesting for clause in clauses):
            return self.fuzzy.ranking(parts, [{} for _ in parts])
        return disjoin(self.fuzzy.norm, [self.search(part, {}) for part in parts])

    def search(self, clause: Clause, values: Values) -> Tensor:
        """The truth of a clause for every entity, [n, E], at the best values of its variables."""
        queries = clause.size
        rows, values = self._beams(clause, values)
        clause = clause.at(rows)
        parts = [self.fuzzy.norm.deny(self.search(group, values)) for group in clause.groups]
        parts += map(self.fuzzy.norm.literal, self.fuzzy.literals(clause, values, FREE))
        truth = conjoin(self.fuzzy.norm, parts)
        return truth.view(queries, -1, truth.shape[1]).amax(1)

    def _beams(self, clause: Clause, values: Values) -> tuple[Tensor, dict[Variable, Tensor]]:
        """Beams for the bound variables: the query that each belongs to, and its values.

        A beam is a row of its own: [n · beams, d]. In each step every beam of a query is extended
        by every entity, and the best of all these extensions are the query's new beams.
        """
        count, size = self.num_entities, clause.size
        rows = torch.arange(size, device=self.device)  # the query of each beam
        beam, left = dict(values), list(clause.bound)
        while left:
            check_time()
            variable = _next(clause, beam, left)
            if variable in left:
                left.remove(variable)
            parts = map(
                self.fuzzy.norm.literal, self.fuzzy.literals(clause.at(rows), beam, variable)
            )
            truth = conjoin(self.fuzzy.norm, list(parts)).view(size, -1)  # [n, beams · E]
            best = truth.topk(min(self.settings.beam, truth.shape[1])).indices
            beams = truth.shape[1] // count
            first = beams * torch.arange(size, device=rows.device)[:, None]
            chosen = (first + best // count).flatten()  # the beam that each new one extends
            rows, beam = rows[chosen], {v: z[chosen] for v, z in beam.items()}
            beam[variable] = self.fuzzy.backbone.rows((best % count).flatten())
        beam.pop(FREE, None)
        return rows, beam


def _next(clause: Clause, values: Values, left: Sequence[Variable]) -> Variable:
    """The variable to search next: one that a literal joins to a constant or to a value.

    Variables with a positive literal of this kind come first, because a negated one says little.
    `?` comes after the others; its beams serve to reach variables that are joined only to it.
    """
    joined: dict[Variable, bool] = {}  # variable -> whether a positive literal joins it
    for side in clause.sides:
        joined[side.variable] = joined.get(side.variable, False) or not side.negated
    for link in clause.links:
        for variable, other in ((link.head, link.tail), (link.tail, link.head)):
            if other in values:
                joined[variable] = joined.get(variable, False) or not link.negated
    ranked = [*left, *([] if FREE in values else [FREE])]
    for positive in (True, False):
        for variable in ranked:
            if joined.get(variable) is positive:
                return variable
    raise QueryError(
        "a beam needs an entity to begin with, but a part of the formula has none; use cqd instead"
    )
