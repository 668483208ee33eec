"""The fuzzy truth of queries on a backbone, for a batch of queries of one pattern.

    ψ(r(h, t)) = σ(scale · φ(h, r, t) + margin),   ψ(¬A) = 1 − ψ(A),   joined by a t-norm

A clause is a conjunct with its constants and relations filled in. Any of its variables can be left
open, and then ranges over all entities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import EQUAL, Backbone, ScoreType
from lmpnn_kge.methods.fuzzy import TNorm, conjoin, disjoin
from lmpnn_kge.query.formula import FREE, Atom, Constant, Term, Variable
from lmpnn_kge.query.normal_form import Conjunct, Literal, normalise, substitute
from lmpnn_kge.query.patterns import Pattern

#: Random questions that the margin of a distance is measured on, and which entity is on it.
QUESTIONS, NEAR = 256, 10

#: Embeddings that are compared with themselves at once.
SELF_CHUNK = 2**16

Values = Mapping[Variable, Tensor]  # embeddings [n, d]


@dataclass(frozen=True, eq=False)
class Side:
    """What a literal says of one variable: the other end is a constant."""

    estimates: Tensor  # [n, d]: f of the constant
    relation: Tensor | None  # [n], towards the variable; None for equality
    variable: Variable
    negated: bool

    def at(self, rows: Tensor) -> Side:
        return replace(self, estimates=self.estimates[rows], relation=_at(self.relation, rows))


@dataclass(frozen=True, eq=False)
class Link:
    """A literal between two variables; no relation is equality."""

    head: Variable
    relation: Tensor | None  # [n]
    tail: Variable
    negated: bool

    def at(self, rows: Tensor) -> Link:
        return replace(self, relation=_at(self.relation, rows))


def _at(relation: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if relation is None else relation[rows]


@dataclass(frozen=True, eq=False)
class Clause:
    """A conjunct of a batch of queries, ready to be valued."""

    size: int  # n
    sides: tuple[Side, ...]
    links: tuple[Link, ...]
    settled: tuple[Tensor, ...]  # logits [n] of literals without variables, signed
    groups: tuple[Clause, ...]
    bound: tuple[Variable, ...]

    def at(self, rows: Tensor) -> Clause:
        """The same clause of some of the queries, which may be repeated."""
        return Clause(
            len(rows),
            tuple(side.at(rows) for side in self.sides),
            tuple(link.at(rows) for link in self.links),
            tuple(logits[rows] for logits in self.settled),
            tuple(group.at(rows) for group in self.groups),
            self.bound,
        )

    def variables(self, sign: int = 1) -> Iterator[tuple[Variable, int]]:
        """All bound variables; the sign is −1 where truth is denied, and they should lower it."""
        yield from ((variable, sign) for variable in self.bound)
        for group in self.groups:
            yield from group.variables(-sign)

    @property
    def nesting(self) -> int:
        """How many searches for variables lie within each other."""
        return bool(self.bound) + max((group.nesting for group in self.groups), default=0)


@dataclass(frozen=True, eq=False)
class Fuzzy:
    """Truth on a backbone: how scores become truth values, and how these are joined."""

    backbone: Backbone
    norm: TNorm
    scale: float
    margin: float

    def clauses(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> list[Clause]:
        """The disjuncts of queries [n, c] and [n, r]."""
        rows = {Constant(name): constants[:, i] for i, name in enumerate(pattern.constants)}
        ids = {name: relations[:, i] for i, name in enumerate(pattern.relations)}
        found = normalise(pattern.formula)
        return [self._clause(conjunct, len(constants), rows, ids) for conjunct in found]

    def _clause(
        self,
        conjunct: Conjunct,
        size: int,
        constants: Mapping[Constant, Tensor],
        relations: Mapping[str, Tensor],
        scope: str = "",
    ) -> Clause:
        sides, links, settled, groups = [], [], [], []
        for literal in conjunct.literals:
            match self._filled(literal, constants, relations):
                case Side() as side:
                    sides.append(side)
                case Link() as link:
                    links.append(link)
                case logits:
                    settled.append(logits)
        for place, group in enumerate(conjunct.groups):
            inner = f"{scope}{place}."  # two groups may use one name
            own: dict[Term, Term] = {v: Variable(f"{inner}{v.name}") for v in group.bound}
            named = substitute(group, own)
            groups.append(self._clause(named, size, constants, relations, inner))
        bound = conjunct.bound
        return Clause(size, tuple(sides), tuple(links), tuple(settled), tuple(groups), bound)

    def _filled(
        self,
        literal: Literal,
        constants: Mapping[Constant, Tensor],
        relations: Mapping[str, Tensor],
    ) -> Side | Link | Tensor:
        """A literal with its places filled, by the end or ends that are open."""
        head, tail = literal.terms
        ids = relations[literal.atom.relation] if isinstance(literal.atom, Atom) else None
        if isinstance(head, Variable) and isinstance(tail, Variable):
            return Link(head, ids, tail, literal.negated)
        if isinstance(head, Variable):  # the same, from tail to head
            head, tail = tail, head
            ids = None if ids is None else self.backbone.inverse(ids)
        assert isinstance(head, Constant)
        told = self._told(self.backbone.entities[constants[head]], ids)
        if isinstance(tail, Variable):
            return Side(told, ids, tail, literal.negated)
        scores = self.backbone.score_pairs(told, self.backbone.entities[constants[tail]], ids)
        return self.logits(scores, literal.negated)

    def _told(self, values: Tensor, ids: Tensor | None) -> Tensor:
        return self.backbone.message(values, EQUAL if ids is None else ids)

    def logits(self, scores: Tensor, negated: bool) -> Tensor:
        """Their sigmoid is the truth of a literal with such scores."""
        found = self.scale * scores + self.margin
        return -found if negated else found

    def truth(self, clause: Clause, values: Values, open_: Variable | None = None) -> Tensor:
        """The value of a clause whose variables have values, [n, 1], or [n, E] if one is open."""
        parts = [self.norm.literal(logits) for logits in self.literals(clause, values, open_)]
        parts += [self.norm.deny(self.truth(group, values, open_)) for group in clause.groups]
        return conjoin(self.norm, parts)

    def ranking(self, clauses: Sequence[Clause], values: Sequence[Values]) -> Tensor:
        """What orders all entities as the truth of any clause does, [n, E].

        Where one literal alone is about the free variable, its score does, free of rounding.
        """
        if len(clauses) == 1 and not clauses[0].groups:
            literals = list(self.literals(clauses[0], values[0], FREE))
            about = [logits for logits in literals if logits.shape[1] > 1]
            if len(about) == 1:
                return about[0]
            return conjoin(self.norm, [self.norm.literal(logits) for logits in literals])
        parts = [self.truth(*part, FREE) for part in zip(clauses, values, strict=True)]
        return disjoin(self.norm, parts)

    def literals(
        self, clause: Clause, values: Values, open_: Variable | None = None
    ) -> Iterator[Tensor]:
        """The signed logits of the literals whose variables have values or are open."""

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
        """φ of estimates against a variable's value, or against all entities."""
        if side.variable == open_:
            return self.backbone.score_entities(side.estimates, side.relation)
        value = values[side.variable]
        return self.backbone.score_pairs(side.estimates, value, side.relation)[:, None]

    def _linked(self, link: Link, values: Values, open_: Variable | None) -> Tensor:
        head, tail, ids = link.head, link.tail, link.relation
        if head == tail == open_:
            return self._selves(ids)
        if head == open_:
            head, tail = tail, head
            ids = None if ids is None else self.backbone.inverse(ids)
        told = self._told(values[head], ids)
        return self._against(Side(told, ids, tail, link.negated), values, open_)

    def _selves(self, ids: Tensor | None) -> Tensor:
        """φ of every entity with itself, for relations [n] -> [n, E], or for equality, [1, E]."""
        table = self.backbone.entities
        if ids is None:
            return self.backbone.score(table, EQUAL, table)[None]
        scores = []
        for pairs in torch.arange(len(ids) * len(table), device=table.device).split(SELF_CHUNK):
            same = table[pairs % len(table)]
            scores.append(self.backbone.score(same, ids[pairs // len(table)], same))
        return torch.cat(scores).view(len(ids), len(table))


def measured_margin(backbone: Backbone, seed: int) -> float:
    """Where a distance is as true as not: that of a near entity; 0 for an inner product."""
    if backbone.score_type is ScoreType.INNER_PRODUCT:
        return 0.0
    random = torch.Generator().manual_seed(seed)
    heads = torch.randint(backbone.num_entities, (QUESTIONS,), generator=random)
    relations = torch.randint(2 * backbone.num_relations, (QUESTIONS,), generator=random)
    near = min(NEAR, backbone.num_entities)
    return -backbone.score_tails(heads, relations).topk(near).values[:, -1].mean().item()
