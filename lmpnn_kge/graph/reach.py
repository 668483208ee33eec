"""The edges that a batch of queries can use: a statement needs no others.

From its constants, a query reaches entities along the edges of its relations, and at each atom only
the edges at these entities matter. They are looked up in an index, so that the cost depends on how
many there are and not on the size of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.graph.adjacency import Adjacency
from lmpnn_kge.graph.answers import Int64s
from lmpnn_kge.graph.triples import distinct
from lmpnn_kge.query.compiler import without_equalities
from lmpnn_kge.query.formula import Atom, Constant, Term, Variable
from lmpnn_kge.query.normal_form import Conjunct

Ints = npt.NDArray[np.integer[Any]]

#: The share of the graph's edges beyond which a statement reads the whole graph instead.
SHARE = 0.25


def reachable(
    disjuncts: Sequence[Conjunct],
    constants: Mapping[str, Ints],
    relations: Mapping[str, Ints],
    adjacency: Adjacency,
    level: int,
) -> dict[str, Ints] | None:
    """The edges up to a level that queries can use, as columns; None if these are too many.

    constants and relations have a column [n] for each name.
    """
    walk = _Walk(adjacency, relations, level, int(SHARE * len(adjacency)))
    starts: dict[Term, Int64s] = {
        Constant(name): np.arange(len(column)) * np.int64(adjacency.entities) + column
        for name, column in constants.items()
    }
    if not all(walk.conjunct(disjunct, starts) for disjunct in disjuncts):
        return None
    return walk.edges()


@dataclass
class _Walk:
    """Collects the groups of edges that queries reach.

    An entity that a query reaches is one number, query · E + entity; those of a term ascend.
    """

    adjacency: Adjacency
    relations: Mapping[str, Ints]
    level: int
    budget: int  # edges that may still be followed
    forward: list[Int64s] = field(default_factory=list)  # groups of edges that atoms read as stored
    backward: list[Int64s] = field(default_factory=list)  # groups of the inverses of such edges

    def conjunct(self, conjunct: Conjunct, starts: Mapping[Term, Int64s]) -> bool:
        """Collect the edges of a conjunct from what some terms can be; False if they are too many.

        A negated atom or group only restricts entities that others have reached, so it comes last.
        """
        conjunct, _ = without_equalities(conjunct)
        reached = {term: rows for term, rows in starts.items() if term not in conjunct.bound}
        positive, denied = (
            [
                literal.atom
                for literal in conjunct.literals
                if isinstance(literal.atom, Atom) and literal.negated == negated
            ]
            for negated in (False, True)
        )
        while waiting := positive or denied:
            start = _nearest(waiting, reached)
            if start is None:
                return False
            atom, near = start
            waiting.remove(atom)
            far: Term | None = atom.head if near == atom.tail else atom.tail
            if waiting is denied or not _is_needed(far, [*positive, *denied], conjunct.groups):
                far = None
            if not self._follow(atom, near, far, reached):
                return False
        return all(self.conjunct(group, reached) for group in conjunct.groups)

    def _follow(
        self, atom: Atom, near: Term, far: Term | None, reached: dict[Term, Int64s]
    ) -> bool:
        """Collect the edges of an atom at the entities of a near term, and reach those of far."""
        index = self.adjacency
        query, entity = np.divmod(reached[near], index.entities)
        relation: Ints = self.relations[atom.relation][query].astype(np.int64)
        if near == atom.tail:
            relation = index.inverse(relation)
        keys, pair = np.unique(relation * index.entities + entity, return_inverse=True)
        groups, exists = index.groups(keys)
        (self.backward if near == atom.tail else self.forward).append(groups[exists])
        if far is None:
            return True
        owners = query[exists[pair]]
        groups = groups[pair[exists[pair]]]
        self.budget -= int(index.sizes(groups).sum())
        if self.budget < 0:
            return False
        run, position = index.members(groups)
        known = index.level[position] <= self.level
        targets = index.target[position[known]].astype(np.int64)
        rows = distinct(owners[run[known]] * index.entities + targets)
        before = reached.get(far)
        reached[far] = rows if before is None else np.intersect1d(rows, before, assume_unique=True)
        return True

    def edges(self) -> dict[str, Ints] | None:
        """Every collected edge once, or None if they are too many."""
        index = self.adjacency
        forward, backward = (
            distinct(np.concatenate([np.zeros(0, np.int64), *groups]))
            for groups in (self.forward, self.backward)
        )
        if index.sizes(forward).sum() + index.sizes(backward).sum() > SHARE * len(index):
            return None
        edges, inverses = index.columns(forward), index.columns(backward)
        turned = {
            "s": inverses["o"],
            "p": index.inverse(inverses["p"]),
            "o": inverses["s"],
            "level": inverses["level"],
        }
        keys = index.key[forward]
        wanted = turned["p"] * np.int64(index.entities) + turned["s"]
        new = np.ones(len(wanted), bool)
        if len(keys):
            new = keys.take(np.searchsorted(keys, wanted), mode="clip") != wanted
        return {name: np.concatenate([edges[name], turned[name][new]]) for name in edges}


def _nearest(atoms: Iterable[Atom], reached: Mapping[Term, Int64s]) -> tuple[Atom, Term] | None:
    """The atom to follow next, and the term to follow it from: the one with the fewest entities."""
    starts = [(atom, term) for atom in atoms for term in atom.terms if term in reached]
    return min(starts, key=lambda start: len(reached[start[1]]), default=None)


def _is_needed(term: Term | None, atoms: Iterable[Atom], groups: Iterable[Conjunct]) -> bool:
    """Whether others start at a variable: atoms without a constant, or negated groups."""
    return isinstance(term, Variable) and (
        any(
            term in atom.terms and not any(isinstance(t, Constant) for t in atom.terms)
            for atom in atoms
        )
        or any(term in group.terms for group in groups)
    )
