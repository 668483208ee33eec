"""CQD: queries answered on an embedding's own scores, with no training (Arakelyan et al., 2021).

A query's truth is that of its literals, joined by a t-norm; an entity is as good an answer as the
query is true of it. What the existential variables stand for is found by optimisation in the space
of embeddings, or by beam search over entities. Negated literals have the truth 1 − ψ; the LMPNN
paper calls this CQD(E).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone, ScoreType
from lmpnn_kge.errors import QueryError, RunError
from lmpnn_kge.methods.clauses import Clause, Fuzzy, Values, measured_margin
from lmpnn_kge.methods.fuzzy import T_NORMS, conjoin, disjoin
from lmpnn_kge.methods.rank import Scores
from lmpnn_kge.query.formula import FREE, Variable
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.settings import Decomposition

if TYPE_CHECKING:
    from typing_extensions import Self

#: Truth values of beams that are held at once.
CHUNK = 2**22

#: The largest gradient, for Adam squares it: denying what is nearly certain has no bounds.
STEEPEST = 1e15


@dataclass(frozen=True, eq=False)
class _Decomposed:
    """What the two have in common: fuzzy truth on a backbone."""

    fuzzy: Fuzzy
    settings: Decomposition

    @classmethod
    def of(cls, backbone: Backbone, settings: Decomposition) -> Self:
        margin = settings.margin or measured_margin(backbone, settings.seed)
        norm = T_NORMS[settings.t_norm]
        return cls(Fuzzy(backbone, norm, settings.scale, margin), settings)

    @property
    def entities(self) -> Tensor:
        return self.fuzzy.backbone.entities


class Cqd(_Decomposed):
    """CQD(E), a `Method`: variables are moved through the space of embeddings by Adam."""

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        """Finds the variables of all queries at once."""
        clauses = self.fuzzy.clauses(pattern, constants, relations)
        found = [self.optimise(clause) for clause in clauses]

        @torch.inference_mode()
        def scores(rows: slice, out: Tensor | None = None) -> Tensor:
            chosen = torch.arange(len(constants), device=constants.device)[rows]
            parts = [clause.at(chosen) for clause in clauses]
            points = [
                {variable: z[rows] for variable, z in values.items() if variable != FREE}
                for values in found
            ]
            return self.fuzzy.ranking(parts, points)

        return scores

    def optimise(self, clause: Clause) -> dict[Variable, Tensor]:
        """The values of the variables for which a clause is truest, [n, d] each.

        Variables of a denied group are moved the other way: to where what is denied is truest.
        Without existential variables there is nothing to find, for every entity takes the place of
        the free one.
        """
        signs = dict(clause.variables())
        if not signs:
            return {}
        signs[FREE] = 1
        settings, table = self.settings, self.entities
        random = torch.Generator().manual_seed(settings.seed)
        start = torch.randn(len(signs), 1, table.shape[1], generator=random)
        size = table.square().mean().sqrt()
        points = (size * start.to(table)).repeat(1, clause.size, 1).requires_grad_()
        ascent = torch.tensor([*signs.values()], device=table.device).view(-1, 1, 1)
        optimiser = torch.optim.Adam([points], lr=settings.learning_rate, fused=True, maximize=True)
        for _ in range(settings.steps):
            values = dict(zip(signs, points, strict=True))
            truth = self.log_truth(clause, values).sum()
            (gradient,) = torch.autograd.grad(truth, points)
            steep = ascent * gradient.clamp(-STEEPEST, STEEPEST)
            points.grad = steep - self._pull(points)
            optimiser.step()
        found = points.detach()
        if not found.isfinite().all():
            raise RunError("the variables' embeddings are not finite; lower learning_rate")
        return dict(zip(signs, found, strict=True))

    def log_truth(self, clause: Clause, values: Values) -> Tensor:
        """The logarithm of a clause's truth where all variables have values, [n]."""
        return self.fuzzy.norm.log(self.fuzzy.truth(clause, values))[:, 0]

    def _pull(self, points: Tensor) -> Tensor | float:
        """The gradient of the penalty: without one, an inner product grows with its sides."""
        if self.fuzzy.backbone.score_type is not ScoreType.INNER_PRODUCT:
            return 0.0
        now = points.detach()
        return 3 * self.settings.penalty * now * now.abs()


class CqdBeam(_Decomposed):
    """CQD-Beam, a `Method`: for every variable the entities of which the query is truest so far."""

    def answer(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Scores:
        clauses = self.fuzzy.clauses(pattern, constants, relations)
        width = self.settings.beam ** max(clause.nesting for clause in clauses)
        size = max(1, CHUNK // (width * len(self.entities)))

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
        """How true a clause is of every entity, [n, E], at the best values of its own variables."""
        queries = clause.size
        rows, values = self._beams(clause, values)
        clause = clause.at(rows)
        parts = [self.fuzzy.norm.deny(self.search(group, values)) for group in clause.groups]
        parts += map(self.fuzzy.norm.literal, self.fuzzy.literals(clause, values, FREE))
        truth = conjoin(self.fuzzy.norm, parts)
        return truth.view(queries, -1, truth.shape[1]).amax(1)

    def _beams(self, clause: Clause, values: Values) -> tuple[Tensor, dict[Variable, Tensor]]:
        """Beams for the bound variables: the query that each belongs to, and its values."""
        count, size = len(self.entities), clause.size
        rows = torch.arange(size, device=self.entities.device)
        found, left = dict(values), list(clause.bound)
        while left:
            variable = _next(clause, found, left)
            if variable in left:
                left.remove(variable)
            parts = map(
                self.fuzzy.norm.literal, self.fuzzy.literals(clause.at(rows), found, variable)
            )
            truth = conjoin(self.fuzzy.norm, list(parts)).view(size, -1)  # [n, beams · E]
            best = truth.topk(min(self.settings.beam, truth.shape[1])).indices
            beams = truth.shape[1] // count
            first = beams * torch.arange(size, device=rows.device)[:, None]
            chosen = (first + best // count).flatten()
            rows, found = rows[chosen], {v: z[chosen] for v, z in found.items()}
            found[variable] = self.entities[(best % count).flatten()]
        found.pop(FREE, None)
        return rows, found


def _next(clause: Clause, values: Values, left: Sequence[Variable]) -> Variable:
    """The variable that most is known of: one that a literal joins to what has a value.

    The free one is tried, to find others that are known through it alone.
    """
    known: dict[Variable, bool] = {}  # with a literal to what is known -> whether not negated
    for side in clause.sides:
        known[side.variable] = known.get(side.variable, False) or not side.negated
    for link in clause.links:
        for one, other in ((link.head, link.tail), (link.tail, link.head)):
            if other in values:
                known[one] = known.get(one, False) or not link.negated
    ranked = [*left, *([] if FREE in values else [FREE])]
    for positive in (True, False):
        for variable in ranked:
            if known.get(variable) is positive:
                return variable
    raise QueryError("a beam needs an entity to begin with; there is none in a part of the formula")
