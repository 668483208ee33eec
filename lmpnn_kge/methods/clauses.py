"""The fuzzy truth of queries on a backbone, for a batch of queries of one pattern.

    ψ(r(h, t)) = σ(scale · φ(h, r, t) + margin),   ψ(¬A) = 1 − ψ(A),   joined by a t-norm

A clause is a conjunct with its constants and relations filled in. One of its variables can be left
open; it then ranges over all entities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.messages import EQUAL, ScoreType
from lmpnn_kge.methods.fuzzy import TNorm, conjoin, disjoin
from lmpnn_kge.query.formula import FREE, Atom, Constant, Variable
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, scoped
from lmpnn_kge.query.patterns import Pattern

#: The margin of a distance is the mean distance of the NEAR-th entity in random QUESTIONS.
QUESTIONS, NEAR = 256, 10

#: Embeddings that are scored against themselves at once.
SELF_CHUNK = 2**16

Values = Mapping[Variable, Tensor]  # embeddings [n, d]


@dataclass(frozen=True, eq=False)
class Side:
    """A literal between a constant and a variable."""

    estimates: Tensor  # [n, d]: f of the constant
    relation: Tensor | None  # [n], towards the variable; None for equality
    variable: Variable
    negated: bool

    def at(self, rows: Tensor) -> Side:
        return replace(self, estimates=self.estimates[rows], relation=_at(self.relation, rows))


@dataclass(frozen=True, eq=False)
class Link:
    """A literal between two variables."""

    head: Variable
    relation: Tensor | None  # [n]; None for equality
    tail: Variable
    negated: bool

    def at(self, rows: Tensor) -> Link:
        return replace(self, relation=_at(self.relation, rows))


def _at(relation: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if relation is None else relation[rows]


@dataclass(frozen=True, eq=False)
class Clause:
    """A conjunct of a batch of queries, whose truth can be computed."""

    size: int  # n
    sides: tuple[Side, ...]
    links: tuple[Link, ...]
    settled: tuple[Tensor, ...]  # signed logits [n] of literals without variables
    groups: tuple[Clause, ...]
    bound: tuple[Variable, ...]

    def at(self, rows: Tensor) -> Clause:
        """The same clause for some of the queries, which may be repeated."""
        return Clause(
            len(rows),
            tuple(side.at(rows) for side in self.sides),
            tuple(link.at(rows) for link in self.links),
            tuple(logits[rows] for logits in self.settled),
            tuple(group.at(rows) for group in self.groups),
            self.bound,
        )

    def variables(self, sign: int = 1) -> Iterator[tuple[Variable, int]]:
        """All bound variables; the sign is −1 in a denied group, where they lower the truth."""
        yield from ((variable, sign) for variable in self.bound)
        for group in self.groups:
            yield from group.variables(-sign)

    @property
    def nesting(self) -> int:
        """The number of searches for variables that are nested in each other."""
        return bool(self.bound) + max((group.nesting for group in self.groups), default=0)


@dataclass(frozen=True, eq=False)
class Fuzzy:
    """Fuzzy truth on a backbone: scores become truth values, and a t-norm joins these."""

    backbone: Backbone
    norm: TNorm
    scale: float
    margin: float

    def clauses(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> list[Clause]:
        """The disjuncts of queries [n, c] and [n, r]."""
        rows = {Constant(name): constants[:, i] for i, name in enumerate(pattern.constants)}
        ids = {name: relations[:, i] for i, name in enumerate(pattern.relations)}
        disjuncts = map(scoped, pattern.disjuncts)
        return [self._clause(conjunct, len(constants), rows, ids) for conjunct in disjuncts]

    def _clause(
        self,
        conjunct: Conjunct,
        size: int,
        constants: Mapping[Constant, Tensor],
        relations: Mapping[str, Tensor],
    ) -> Clause:
        sides, links, settled = [], [], []
        for literal in conjunct.literals:
            match self._filled(literal, constants, relations):
                case Side() as side:
                    sides.append(side)
                case Link() as link:
                    links.append(link)
                case logits:
                    settled.append(logits)
        groups = (self._clause(group, size, constants, relations) for group in conjunct.groups)
        return Clause(
            size, tuple(sides), tuple(links), tuple(settled), tuple(groups), conjunct.bound
        )

    def _filled(
        self,
        literal: SignedAtom,
        constants: Mapping[Constant, Tensor],
        relations: Mapping[str, Tensor],
    ) -> Side | Link | Tensor:
        """A literal with its places filled; a tensor of logits if it has no variable."""
        head, tail = literal.terms
        ids = relations[literal.atom.relation] if isinstance(literal.atom, Atom) else None
        if isinstance(head, Variable) and isinstance(tail, Variable):
            return Link(head, ids, tail, literal.negated)
        if isinstance(head, Variable):  # read it from tail to head, over the inverse relation
            head, tail = tail, head
            ids = None if ids is None else self.backbone.inverse(ids)
        assert isinstance(head, Constant)
        estimates = self._estimates(self.backbone.rows(constants[head]), ids)
        if isinstance(tail, Variable):
            return Side(estimates, ids, tail, literal.negated)
        scores = self.backbone.score_pairs(estimates, self.backbone.rows(constants[tail]), ids)
        return self.logits(scores, literal.negated)

    def _estimates(self, values: Tensor, ids: Tensor | None) -> Tensor:
        """f of embeddings [n, d] over relations [n], or over equality."""
        return self.backbone.message(values, EQUAL if ids is None else ids)

    def logits(self, scores: Tensor, negated: bool) -> Tensor:
        """The logits of a literal, from its scores; their sigmoid is its truth."""
        logits = self.scale * scores + self.margin
        return -logits if negated else logits

    def truth(self, clause: Clause, values: Values, open_: Variable | None = None) -> Tensor:
        """The value of a clause whose variables have values, [n, 1]; if one is open, [n, E]."""
        parts = [self.norm.literal(logits) for logits in self.literals(clause, values, open_)]
        parts += [self.norm.deny(self.truth(group, values, open_)) for group in clause.groups]
        return conjoin(self.norm, parts)

    def ranking(self, clauses: Sequence[Clause], values: Sequence[Values]) -> Tensor:
        """Values [n, E] that order entities as the truth of the disjunction of all clauses does.

        If only one literal mentions the free variable, its logits have the same order as the truth,
        and rounding does not make ties of them. Then 1p is exactly link prediction.
        """
        if len(clauses) == 1 and not clauses[0].groups:
            literals = list(self.literals(clauses[0], values[0], FREE))
            about_free = [logits for logits in literals if logits.shape[1] > 1]
            if len(about_free) == 1:
                return about_free[0]
            return conjoin(self.norm, [self.norm.literal(logits) for logits in literals])
        parts = [self.truth(*part, FREE) for part in zip(clauses, values, strict=True)]
        return disjoin(self.norm, parts)

    def literals(
        self, clause: Clause, values: Values, open_: Variable | None = None
    ) -> Iterator[Tensor]:
        """The signed logits of all literals whose variables have values or are open."""

        def ready(*ends: Variable) -> bool:
            return all(end == open_ or end in values for end in ends)

        yield from (logits[:, None] for logits in clause.settled)
        for side in clause.sides:
            if ready(side.variable):
                yield self.logits(self._against(side, values, open_), side.negated)
        for link in clause.links:
            if ready(link.head, link.tail):
                scores = self._linked(link, values, open_).expand(clause.size, -1)
                yield self.logits(scores, link.negated)

    def _against(self, side: Side, values: Values, open_: Variable | None) -> Tensor:
        """φ of estimates against a variable's value, [n, 1], or against all entities, [n, E]."""
        if side.variable == open_:
            return self.backbone.score_entities(side.estimates, side.relation)
        value = values[side.variable]
        return self.backbone.score_pairs(side.estimates, value, side.relation)[:, None]

    def _linked(self, link: Link, values: Values, open_: Variable | None) -> Tensor:
        """φ of two variables, of which at most one is open unless they are the same."""
        head, tail, ids = link.head, link.tail, link.relation
        if head == tail == open_:
            return self._selves(ids)
        if head == open_:
            head, tail = tail, head
            ids = None if ids is None else self.backbone.inverse(ids)
        estimates = self._estimates(values[head], ids)
        return self._against(Side(estimates, ids, tail, link.negated), values, open_)

    def _selves(self, ids: Tensor | None) -> Tensor:
        """φ of every entity with itself over relations [n] -> [n, E], or over equality, [1, E]."""
        backbone = self.backbone
        if ids is None:
            parts = [backbone.score(table, EQUAL, table) for _, table in backbone.blocks()]
            return torch.cat(parts)[None]
        scores = torch.empty(len(ids), backbone.num_entities, device=backbone.device)
        for span, table in backbone.blocks():
            of_block = []
            every = torch.arange(len(ids) * len(table), device=table.device)
            for pairs in every.split(SELF_CHUNK):
                same = table[pairs % len(table)]
                of_block.append(backbone.score(same, ids[pairs // len(table)], same))
            scores[:, span] = torch.cat(of_block).view(len(ids), len(table))
        return scores


def measured_margin(backbone: Backbone, seed: int) -> float:
    """A margin that makes a near entity as true as false; 0 for an inner product.

    A distance has no natural zero: without a margin, every literal would be more false than true.
    """
    if backbone.score_type is ScoreType.INNER_PRODUCT:
        return 0.0
    random = torch.Generator().manual_seed(seed)
    heads = torch.randint(backbone.num_entities, (QUESTIONS,), generator=random)
    relations = torch.randint(2 * backbone.num_relations, (QUESTIONS,), generator=random)
    near = min(NEAR, backbone.num_entities)
    return -backbone.score_tails(heads, relations).topk(near).values[:, -1].mean().item()
