"""The fuzzy truth of a conjunct for every entity, by eliminating its variables one by one.

A variable with a single neighbour is replaced by a message to it: for every entity t, how true it
is that some entity of the variable is connected with t. Variables of a circle have no single
neighbour; one of them is tried entity by entity. Conditions with a constant are computed for all
entities. From a variable only its best entities pass a message on, and only a few of these over
edges that are not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import torch
from torch import Tensor

from lmpnn_kge.query.formula import Atom, Term, Variable
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom
from lmpnn_kge.search.logic import ALMOST, IMPOSSIBLE, UNREACHED, Logic, deny
from lmpnn_kge.search.truth import Truth
from lmpnn_kge.work.deadline import check_time

#: Truths that a step has in memory at once: few enough for a CPU's cache.
CHUNK = 2**20


class Role(IntEnum):
    """What kind of condition a part of a query is."""

    EDGE = 0  # from a constant
    NO_EDGE = 1
    PATH = 2  # through variables
    NO_PATH = 3


@dataclass(frozen=True, eq=False)
class Part:
    """A condition on one variable."""

    truth: Tensor  # [n, E], or [n, 1] if it is the same for all entities
    role: Role
    relation: Tensor | None = None  # [n]: the last relation, towards the variable
    head: Tensor | None = None  # [n]: the constant of an edge


@dataclass(frozen=True, eq=False)
class Batch:
    """Queries of one pattern: an entity for each constant, an id for each relation."""

    size: int
    values: Mapping[Term, Tensor]  # [n]; also of variables that are tried
    relations: Mapping[str, Tensor]  # [n]

    def at(self, rows: Tensor, values: Mapping[Term, Tensor] | None = None) -> Batch:
        """Some of the queries, perhaps repeated; and values for variables."""
        return Batch(
            len(rows),
            {**{term: ids[rows] for term, ids in self.values.items()}, **(values or {})},
            {name: ids[rows] for name, ids in self.relations.items()},
        )


Item = SignedAtom | Conjunct


@dataclass(frozen=True, eq=False)
class Solver:
    """Computes truths for batches of queries."""

    truth: Truth
    logic: Logic
    beam: int  # entities of a variable that pass a message on
    guesses: int  # those of them that pass it on over edges that are not known
    tries: int  # entities that are tried for a variable of a circle
    _ends: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False)
    _loops: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False)

    @property
    def num_entities(self) -> int:
        return self.truth.facts.num_entities

    def solve(self, conjunct: Conjunct, batch: Batch, target: Variable | None) -> Tensor:
        """The log truth of a conjunct for every entity as target, [n, E]; without one, [n, 1]."""
        width = 1 if target is None else self.num_entities
        truth = torch.zeros(batch.size, width, device=self.truth.device)
        return self.logic.every([truth, *(p.truth for p in self.parts(conjunct, batch, target))])

    def parts(self, conjunct: Conjunct, batch: Batch, target: Variable | None) -> list[Part]:
        """The conditions on the target that are left when all other variables are eliminated."""
        check_time()
        on: dict[Variable | None, list[Part]] = {}
        links: list[Item] = []
        items: tuple[Item, ...] = (*conjunct.literals, *conjunct.groups)
        for item in items:
            variables = _open(item, batch)
            if len(variables) > 1:
                links.append(item)
            else:
                variable = next(iter(variables), None)
                on.setdefault(variable, []).append(self._part(item, batch, variable))
        left = [v for v in conjunct.bound if v not in batch.values and v != target]
        while left:
            check_time()
            # A variable that has conditions first: what it says of its neighbour is sharper.
            variable = min(left, key=lambda v: (len(_neighbours(v, links, batch)), v not in on))
            neighbours = _neighbours(variable, links, batch)
            used = [link for link in links if variable in link.terms]
            if len(neighbours) > 1 or any(isinstance(link, Conjunct) for link in used):
                return [self._try(conjunct, batch, target, variable, on.get(variable, []))]
            left.remove(variable)
            links = [link for link in links if link not in used]
            neighbour = next(iter(neighbours), None)
            literals = [link for link in used if isinstance(link, SignedAtom)]
            part = self._eliminate(variable, neighbour, literals, on.pop(variable, []), batch)
            on.setdefault(neighbour, []).append(part)
        return [part for v in dict.fromkeys([target, None]) for part in on.get(v, [])]

    # Conditions on one variable ---------------------------------------------------------------

    def _part(self, item: Item, batch: Batch, variable: Variable | None) -> Part:
        if isinstance(item, SignedAtom):
            return self._literal(item, batch, variable)
        relation = next(
            (
                self._towards(variable, literal.atom, batch)
                for literal in item.literals
                if variable in literal.terms and isinstance(literal.atom, Atom)
            ),
            None,
        )
        return Part(deny(self.solve(item, batch, variable)), Role.NO_PATH, relation)

    def _literal(self, literal: SignedAtom, batch: Batch, variable: Variable | None) -> Part:
        head, tail = literal.terms
        relation, source = None, None
        if not isinstance(literal.atom, Atom):
            truth = self._equal(head, tail, batch, variable)
        else:
            relation = self._towards(variable or tail, literal.atom, batch)
            if variable is not None and head == tail:
                truth = self._per_relation(relation, self._loops, self._make_loops)
            else:
                source = batch.values[tail if head == variable else head]
                truth = self.truth.rows(source, relation)
                if variable is None:
                    truth = truth.gather(1, batch.values[tail][:, None])
        if literal.negated:
            return Part(deny(truth), Role.NO_EDGE, relation, source)
        return Part(truth, Role.EDGE, relation, source)

    def _equal(self, left: Term, right: Term, batch: Batch, variable: Variable | None) -> Tensor:
        if left == right:
            same = torch.ones(batch.size, 1, dtype=torch.bool, device=self.truth.device)
        elif variable is None:
            same = (batch.values[left] == batch.values[right])[:, None]
        else:
            other = batch.values[left if right == variable else right]
            same = torch.arange(self.num_entities, device=other.device) == other[:, None]
        return torch.where(same, 0.0, -torch.inf)

    def _towards(self, term: Term | None, atom: Atom, batch: Batch) -> Tensor:
        """The relations [n] of an atom, read in the direction of one of its terms."""
        relation, count = batch.relations[atom.relation], self.truth.facts.num_relations
        return relation if atom.tail == term else (relation + count) % (2 * count)

    # Messages ---------------------------------------------------------------------------------

    def _eliminate(
        self,
        variable: Variable,
        neighbour: Variable | None,
        links: Sequence[SignedAtom],
        parts: Sequence[Part],
        batch: Batch,
    ) -> Part:
        """What a variable says of its only neighbour; without one, of the query as a whole."""
        if neighbour is None:
            truth = self.logic.every([part.truth for part in parts])
            return Part(self.logic.some(truth, 1)[:, None], Role.PATH)
        relations = [
            self._towards(neighbour, link.atom, batch)
            for link in links
            if isinstance(link.atom, Atom) and not link.negated
        ]
        relation = relations[0] if relations else None
        is_hop = len(links) == 1 and relation is not None
        if is_hop and not parts:
            assert relation is not None
            ends = self._per_relation(relation, self._ends, self._make_ends)
            return Part(ends, Role.PATH, relation)
        truths, entities = self._best(parts, relations, batch.size, self.beam)
        if is_hop:
            assert relation is not None
            message = self._hop(entities, truths, relation)
        else:
            message = self._join(entities, truths, links, variable, neighbour, batch)
        return Part(message, Role.PATH, relation)

    def _best(
        self, parts: Sequence[Part], relations: Sequence[Tensor], size: int, most: int
    ) -> tuple[Tensor, Tensor]:
        """The truths and ids of the best entities of a variable, [n, k] each.

        Entities without a known edge of a relation that they must pass on are left out: their rows
        are not sharp, and without them search is faster and better. A beam that holds all entities
        holds these, too.
        """
        start = torch.zeros(size, self.num_entities, device=self.truth.device)
        truth = self.logic.every([start, *(part.truth for part in parts)])
        if most < self.num_entities:
            for relation in relations:
                truth.masked_fill_(~self.truth.facts.heads_of(relation), -torch.inf)
        best = truth.topk(min(most, self.num_entities))
        return best.values, best.indices

    def _hop(self, entities: Tensor, truths: Tensor, relation: Tensor) -> Tensor:
        """The message of entities [n, k] over an edge of relations [n]: [n, E].

        Every entity passes it on over its known edges. Over other edges only a few do: those that
        probably lack most edges, by their truth and the number of edges that are known.
        """
        facts, message = self.truth.facts, _Message(self, len(relation))
        keys = facts.keys_of(entities, relation[:, None])
        lacking = truths + facts.count(keys).clamp(min=1).log()
        guessing = lacking.topk(min(self.guesses, keys.shape[1])).indices  # [n, g]
        count = guessing.shape[1]
        for rows in self._blocks(len(keys), count):
            heads, chances = (each[rows].gather(1, guessing[rows]) for each in (entities, truths))
            edges = self.truth.chances(heads.flatten(), relation[rows].repeat_interleave(count))
            edges = edges.view(len(rows), count, -1)
            chances = chances.exp_()[..., None]
            if self.logic.t_norm == "product":
                edges *= chances
            else:
                torch.minimum(edges, chances, out=edges)
            message.add(rows, edges)
        if self.truth.certain:
            others = (truths > IMPOSSIBLE).scatter_(1, guessing, False)
            self._pass_known(message, others.nonzero()[:, 0], keys[others], truths[others].exp())
        return message.truth()

    def _pass_known(self, message: _Message, owners: Tensor, keys: Tensor, chances: Tensor) -> None:
        """Add the known edges of keys [m] of queries [m]; a block has about `CHUNK` of them."""
        facts = self.truth.facts
        blocks = facts.count(keys).cumsum(0) // CHUNK
        for rows in torch.arange(len(keys), device=keys.device).split(
            blocks.unique_consecutive(return_counts=True)[1].tolist()
        ):
            position, tails = facts.tails_of(keys[rows])
            message.scatter(owners[rows][position], tails, chances[rows][position])

    def _join(
        self,
        entities: Tensor,
        truths: Tensor,
        links: Sequence[SignedAtom],
        variable: Variable,
        neighbour: Variable,
        batch: Batch,
    ) -> Tensor:
        """The message of entities [n, k] over links that are not a single edge: [n, E]."""
        message, count = _Message(self, batch.size), entities.shape[1]
        for rows in self._blocks(batch.size, count):
            here = batch.at(rows.repeat_interleave(count), {variable: entities[rows].flatten()})
            parts = [self._literal(link, here, neighbour).truth for link in links]
            start = truths[rows].view(-1, 1).expand(-1, self.num_entities)
            joined = self.logic.every([start, *parts]).exp()
            message.add(rows, joined.view(len(rows), count, -1))
        return message.truth()

    def _try(
        self,
        conjunct: Conjunct,
        batch: Batch,
        target: Variable | None,
        variable: Variable,
        parts: Sequence[Part],
    ) -> Part:
        """The truth of a conjunct whose variables have no order: one is tried, entity by entity."""
        relations = [
            self._towards(other, literal.atom, batch)
            for literal in conjunct.literals
            if isinstance(literal.atom, Atom) and not literal.negated and variable in literal.terms
            for other in literal.terms
            if other != variable and other not in batch.values
        ]
        _, entities = self._best(parts, relations, batch.size, self.tries)
        tried = entities.shape[1]
        solved = []
        for rows in self._blocks(batch.size, tried):
            here = batch.at(rows.repeat_interleave(tried), {variable: entities[rows].flatten()})
            truth = self.solve(conjunct, here, target)
            solved.append(self.logic.some(truth.view(len(rows), tried, -1), 1))
        return Part(torch.cat(solved), Role.PATH)

    def _blocks(self, size: int, count: int) -> tuple[Tensor, ...]:
        """Some of n queries at a time, if each of them needs `count` rows."""
        rows = torch.arange(size, device=self.truth.device)
        return rows.split(max(1, CHUNK // (count * self.num_entities)))

    # Rows that belong to a relation alone -----------------------------------------------------

    def _per_relation(
        self, relations: Tensor, cache: dict[int, Tensor], make: Callable[[int], Tensor]
    ) -> Tensor:
        """A row for each of relations [n], made once."""
        distinct, positions = relations.unique(return_inverse=True)
        for relation in distinct.tolist():
            if relation not in cache:
                cache[relation] = make(relation)
        return torch.stack([cache[relation] for relation in distinct.tolist()])[positions]

    def _make_ends(self, relation: int) -> Tensor:
        """For every entity, the truth of "something is connected with it by the relation"."""
        heads = self._heads(relation)[None]
        true = torch.zeros(heads.shape, device=heads.device)
        return self._hop(heads, true, torch.tensor([relation], device=heads.device))[0]

    def _make_loops(self, relation: int) -> Tensor:
        """For every entity, the truth of an edge to itself."""
        loops = torch.full((self.num_entities,), UNREACHED, device=self.truth.device)
        for heads in self._heads(relation).split(max(1, CHUNK // self.num_entities)):
            rows = self.truth.rows(heads, torch.full_like(heads, relation))
            loops[heads] = rows.gather(1, heads[:, None])[:, 0]
        return loops

    def _heads(self, relation: int) -> Tensor:
        """The entities with a known edge of a relation; all, if a beam holds all."""
        if self.beam < self.num_entities:
            return self.truth.facts.heads(relation)
        return torch.arange(self.num_entities, device=self.truth.device)


class _Message:
    """The truth of "some entity is connected with t" for n queries, joined as it comes in."""

    def __init__(self, solver: Solver, size: int):
        self.by_max = solver.logic.exists == "max"
        # For max: the truth; for noisy-or: Σ log(1 − truth).
        self.joined = torch.zeros(size, solver.num_entities, device=solver.truth.device)

    def add(self, queries: Tensor, truths: Tensor) -> None:
        """Add truths [m, k, E] (no logarithms) of k entities of queries [m]. Overwrites them."""
        if self.by_max:
            self.joined[queries] = torch.maximum(self.joined[queries], truths.amax(1))
        else:
            self.joined[queries] += truths.neg_().log1p_().sum(1)

    def scatter(self, queries: Tensor, tails: Tensor, truths: Tensor) -> None:
        """Add truths (no logarithms) of single tails [m] of queries [m]. Overwrites the truths."""
        index = queries * self.joined.shape[1] + tails
        joined = self.joined.view(-1)
        if self.by_max:
            joined.scatter_reduce_(0, index, truths, "amax")
        else:
            joined.scatter_add_(0, index, truths.neg_().log1p_())

    def truth(self) -> Tensor:
        """The log truth, [n, E]."""
        if self.by_max:
            truth = self.joined
        else:
            certain = self.joined == -torch.inf  # one path is, by itself
            truth = torch.expm1(self.joined).neg_().clamp_(max=ALMOST).masked_fill_(certain, 1.0)
        return truth.clamp_(min=math.exp(UNREACHED)).log_()  # the logarithm of 0 is slow


def _open(item: Item, batch: Batch) -> set[Variable]:
    """The variables of an item that have no value yet, without those that a group binds."""
    bound = item.bound if isinstance(item, Conjunct) else ()
    return {
        term
        for term in item.terms
        if isinstance(term, Variable) and term not in bound and term not in batch.values
    }


def _neighbours(variable: Variable, links: Sequence[Item], batch: Batch) -> set[Variable]:
    touching = (link for link in links if variable in link.terms)
    return {other for link in touching for other in _open(link, batch)} - {variable}
