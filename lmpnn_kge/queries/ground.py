"""Random queries that are known to have an answer, because they are filled backwards from one.

An answer is drawn, then an edge into it, then an edge into the other end of that one, until every
place of the pattern is filled. Many queries are filled at once: each step is a gather for all of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.triples import both_directions
from lmpnn_kge.queries.rules import Rules
from lmpnn_kge.query.formula import Atom, Constant, Term, connected_to, literals
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.work.once import once

Ints = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of both directions, sorted so that those into an entity lie together.

    As in BetaE, a relation is drawn first and then one of its edges, so that a relation with many
    edges is not drawn more often than others. The edges of one relation into one target therefore
    form a group, and the groups of one target lie together.
    """

    entities: int
    relations: int  # R; relation r + R is the inverse of r
    source: Ints  # [m], sorted by target, then relation
    group: Ints  # [g + 1]: the first edge of each group
    group_key: Ints  # [g]: target · 2R + relation, ascending
    first_group: Ints  # [E + 1]: the first group of each target

    @classmethod
    def of(cls, triples: Ints, entities: int, relations: int) -> Edges:
        """The edges of triples [n, 3], which are sorted by head, relation and tail."""
        source, relation, target = both_directions(triples, relations).T
        keys = target * np.int64(2 * relations) + relation
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        group = np.flatnonzero(np.diff(keys, prepend=-1))
        return cls(
            entities,
            relations,
            source[order].astype(np.int32),
            np.append(group, len(keys)),
            keys[group],
            np.searchsorted(keys[group], np.arange(entities + 1) * 2 * relations),
        )

    @once
    def pairs(self) -> tuple[Ints, Ints]:
        """source · E + target of all edges, ascending, and the relation of each, [m]."""
        target, relation = np.divmod(self.group_key, 2 * self.relations)
        size = np.diff(self.group)
        keys = self.source * np.int64(self.entities) + np.repeat(target, size)
        order = np.argsort(keys, kind="stable")
        return keys[order], np.repeat(relation, size)[order]

    def inverse(self, relation: Ints) -> Ints:
        """The inverses of relations."""
        return (relation + self.relations) % (2 * self.relations)

    def start(self, count: int, random: np.random.Generator) -> Ints:
        """Entities to begin with, which become the answers of queries."""
        return random.integers(self.entities, size=count)

    def ends(self, count: int, random: np.random.Generator) -> Ints:
        """Entities that have an edge."""
        into = np.flatnonzero(np.diff(self.first_group))
        return into[random.integers(len(into), size=count)]

    def draw(self, target: Ints, random: np.random.Generator) -> tuple[Ints, Ints, Mask]:
        """An edge into each target: its relation, its source, and whether the target has any."""
        first, last = self.first_group[target], self.first_group[target + 1]
        exists = last > first
        group = np.where(exists, _pick(first, last, random), 0)
        relation = self.group_key[group] % (2 * self.relations)
        return relation, self._source(group, random), exists

    def draw_of(
        self, target: Ints, relation: Ints, random: np.random.Generator
    ) -> tuple[Ints, Mask]:
        """An edge of a given relation into each target: its source, and whether there is any."""
        keys = target * (2 * self.relations) + relation
        group = np.minimum(np.searchsorted(self.group_key, keys), len(self.group_key) - 1)
        return self._source(group, random), self.group_key[group] == keys

    def between(self, source: Ints, target: Ints, random: np.random.Generator) -> tuple[Ints, Mask]:
        """A relation from each source to its target, and whether there is any."""
        pair_key, pair_relation = self.pairs
        keys = source * self.entities + target
        first = np.searchsorted(pair_key, keys)
        last = np.searchsorted(pair_key, keys, side="right")
        pair = np.where(last > first, _pick(first, last, random), 0)
        return pair_relation[pair], last > first

    def _source(self, group: Ints, random: np.random.Generator) -> Ints:
        chosen = self.source[_pick(self.group[group], self.group[group + 1], random)]
        return chosen.astype(np.int64)  # keys are products, which 32 bits cannot hold


def _pick(first: Ints, last: Ints, random: np.random.Generator) -> Ints:
    """A random number of each range first … last − 1; for an empty range the result is invalid."""
    return first + (random.random(len(first)) * (last - first)).astype(np.int64)


def ground(
    pattern: Pattern,
    edges: Edges,
    count: int,
    random: np.random.Generator,
    rules: Rules | None = None,
    apart: Mapping[Atom, Edges] | None = None,
) -> tuple[Ints, Ints]:
    """Queries of a pattern with an answer each: constants [n, c] and relations [n, r], n ≤ count.

    Negated atoms are filled like positive ones, so that the negation really removes an answer: the
    drawn one. The atoms in `apart` are filled with edges of their own. Queries in which a step
    undoes the one before, or an atom repeats another, are left out, unless the rules allow them.
    """
    start, *_ = pattern.free
    apart = apart or {}
    near = [own for atom, own in apart.items() if start in atom.terms]
    values: dict[Term, Ints] = {
        start: near[0].ends(count, random) if near else edges.start(count, random)
    }
    relations: dict[str, Ints] = {}
    good = np.ones(count, bool)
    steps: list[_Step] = []
    for atom, known in _order(pattern):
        pool = apart.get(atom, edges)
        other = atom.tail if known == atom.head else atom.head
        towards_head = known == atom.head  # the drawn edge leads into `known`: the atom's inverse
        given = relations.get(atom.relation)  # a relation may occur in several atoms
        if other in values:  # both ends are filled: only the relation is missing
            drawn, exists = pool.between(values[atom.head], values[atom.tail], random)
            if given is not None:
                exists &= drawn == given
            relations.setdefault(atom.relation, drawn)
        elif given is not None:
            into = edges.inverse(given) if towards_head else given
            values[other], exists = pool.draw_of(values[known], into, random)
        else:
            into, values[other], exists = pool.draw(values[known], random)
            relations[atom.relation] = edges.inverse(into) if towards_head else into
        good &= exists
        steps.append(_Step(atom, known, other))
    rules = rules or Rules()
    if rules.no_return:
        good &= ~_undone(steps, relations, edges, count)
    if rules.no_repeat:
        good &= ~_repeated(steps, values, relations, edges, count)
    for name in pattern.constants:  # a constant that no atom mentions may be any entity
        values.setdefault(Constant(name), random.integers(edges.entities, size=count))
    return (
        _stacked([values[Constant(name)][good] for name in pattern.constants], int(good.sum())),
        _stacked([relations[name][good] for name in pattern.relations], int(good.sum())),
    )


def _stacked(columns: list[Ints], rows: int) -> Ints:
    """Columns [n] as [n, k], even if there are none."""
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0), np.int64)


@dataclass(frozen=True)
class _Step:
    """An atom that was filled from its known end to the other."""

    atom: Atom
    known: Term
    other: Term

    def outward(self, term: Term, relations: dict[str, Ints], edges: Edges) -> Ints:
        """The atom's relation, read in the direction away from one of its terms."""
        relation = relations[self.atom.relation]
        return relation if self.atom.head == term else edges.inverse(relation)


def _order(pattern: Pattern) -> Iterator[tuple[Atom, Term]]:
    """The atoms in an order in which each has a term that those before it filled; and that term."""
    atoms = [literal for literal in literals(pattern.formula) if isinstance(literal, Atom)]
    start, *others = pattern.free
    connected = connected_to(start, atoms)
    known: set[Term] = {start}
    if len(connected) < len(atoms) or not {*others} <= {t for atom in atoms for t in atom.terms}:
        raise QueryError(f"{pattern} cannot be sampled: its atoms alone do not connect it to f")
    for atom in connected:
        yield atom, atom.tail if atom.tail in known else atom.head
        known.update(atom.terms)


def _undone(steps: list[_Step], relations: dict[str, Ints], edges: Edges, count: int) -> Mask:
    """The queries in which a step into a variable is followed by its own inverse.

    A pattern that has the same relation in both steps wants just that.
    """
    undone = np.zeros(count, bool)
    for near, far in combinations(steps, 2):
        wanted = near.atom.relation == far.atom.relation
        if not wanted and near.other == far.known and near.other not in (near.known, far.other):
            term = near.other
            undone |= near.outward(term, relations, edges) == far.outward(term, relations, edges)
    return undone


def _repeated(
    steps: list[_Step],
    values: dict[Term, Ints],
    relations: dict[str, Ints],
    edges: Edges,
    count: int,
) -> Mask:
    """The queries in which two atoms are the same triple, perhaps one by its inverse relation."""

    def triple(step: _Step) -> tuple[Ints, Ints, Ints]:
        head, tail = values[step.atom.head], values[step.atom.tail]
        relation = relations[step.atom.relation]
        forward = relation < edges.relations
        return (
            np.where(forward, head, tail),
            np.where(forward, relation, edges.inverse(relation)),
            np.where(forward, tail, head),
        )

    triples = [triple(step) for step in steps]
    repeated = np.zeros(count, bool)
    for a, b in combinations(triples, 2):
        repeated |= (a[0] == b[0]) & (a[1] == b[1]) & (a[2] == b[2])
    return repeated
