"""Witnesses, and how their atoms are looked up to make reasons of them.

A witness assigns an entity to each variable that is asked for, or that a disjunct binds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lmpnn_kge.query.formula import Atom, Constant, Equal, Term, Variable
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, substitute
from lmpnn_kge.query.reason import CheckedAtom, CheckedGroup, Name, Reason, Status

Edge = tuple[int, int, int]
Edges = npt.NDArray[np.int64]  # [n, 3]: head, relation, tail
Known = Callable[[Edges], npt.NDArray[np.bool_]]
Probability = Callable[[Edges], npt.NDArray[np.floating[Any]]]


class Names(Protocol):
    """The names of numbered entities and relations, as a vocabulary has them."""

    @property
    def entity_ids(self) -> list[str]: ...

    @property
    def relation_ids(self) -> list[str]: ...

    def entity(self, name: str) -> int: ...

    def relation(self, name: str) -> int: ...

    def label(self, entity: int) -> str: ...

    def relation_label(self, relation: int) -> str: ...


@dataclass(frozen=True)
class Witness:
    """An entity for each variable that a formula asks for, or that one of its disjuncts binds.

    paths has for each denied group the probability that its path exists nevertheless: 1 if such a
    path is known, None if only the known edges were searched and there is none. open_paths are the
    numbers of the groups that hold by the known edges, but only while other edges are missing.
    """

    disjunct: Conjunct
    values: Mapping[Variable, int]
    paths: tuple[float | None, ...] | None = None
    open_paths: frozenset[int] = frozenset()


def explain(
    witnesses: Sequence[Witness],
    names: Names,
    known: Known,
    probability: Probability | None = None,
) -> list[Reason]:
    """The reasons that witnesses make.

    known says which edges [n, 3] the training graph has, and probability how likely each of the
    others is. Each is called at most once, with the distinct edges of all witnesses. Without
    probability, no edge is predicted.
    """
    filled = [_Filled(witness, names) for witness in witnesses]
    facts = _look_up([edge for one in filled for edge in one.edges()], known, probability)
    return [one.reason(facts) for one in filled]


@dataclass(frozen=True)
class _Fact:
    """Whether an edge is known, and if not, how likely it is, if anything says so."""

    known: bool
    probability: float | None = None


@dataclass(frozen=True)
class _Filled:
    """A witness with the rows and names of all its terms."""

    witness: Witness
    names: Names

    def edges(self) -> Iterator[Edge]:
        for literal in self.witness.disjunct.literals:
            if isinstance(literal.atom, Atom):
                yield self._edge(literal.atom)

    def reason(self, facts: Mapping[Edge, _Fact]) -> Reason:
        disjunct = self.witness.disjunct
        paths = self.witness.paths or (None,) * len(disjunct.groups)
        return Reason(
            disjunct,
            {term: self._name(term) for term in (*disjunct.free, *disjunct.bound, *disjunct.terms)},
            tuple(self._check(literal, facts) for literal in disjunct.literals),
            tuple(
                self._check_group(number, group, chance)
                for number, (group, chance) in enumerate(zip(disjunct.groups, paths, strict=True))
            ),
        )

    def _row(self, term: Term) -> int:
        if isinstance(term, Variable):
            return self.witness.values[term]
        return self.names.entity(term.name)

    def _edge(self, atom: Atom) -> Edge:
        return self._row(atom.head), self.names.relation(atom.relation), self._row(atom.tail)

    def _name(self, term: Term) -> Name:
        row = self._row(term)
        return Name(self.names.entity_ids[row], self.names.label(row))

    def _check(self, literal: SignedAtom, facts: Mapping[Edge, _Fact]) -> CheckedAtom:
        head, tail = map(self._name, literal.terms)
        if isinstance(literal.atom, Equal):
            holds = (head.id == tail.id) != literal.negated
            return CheckedAtom(literal, None, head, tail, Status.TRUE if holds else Status.FALSE)
        edge = self._edge(literal.atom)
        relation = Name(self.names.relation_ids[edge[1]], self.names.relation_label(edge[1]))
        status = _status(facts[edge], negated=literal.negated)
        return CheckedAtom(literal, relation, head, tail, status, facts[edge].probability)

    def _check_group(self, number: int, group: Conjunct, chance: float | None) -> CheckedGroup:
        outside = [term for term in group.terms if term not in group.bound]
        labels: dict[Term, Term] = {term: Constant(self._name(term).label) for term in outside}
        status = Status.OPEN_PATH if number in self.witness.open_paths else Status.NO_PATH
        if chance == 1:
            status = Status.DENIED_PATH
        filled = self._with_relation_labels(substitute(group, labels))
        return CheckedGroup(group, filled, status, None if chance == 1 else chance)

    def _with_relation_labels(self, conjunct: Conjunct) -> Conjunct:
        def label(literal: SignedAtom) -> SignedAtom:
            if isinstance(literal.atom, Equal):
                return literal
            name = self.names.relation_label(self.names.relation(literal.atom.relation))
            return replace(literal, atom=replace(literal.atom, relation=name))

        return replace(
            conjunct,
            literals=tuple(map(label, conjunct.literals)),
            groups=tuple(map(self._with_relation_labels, conjunct.groups)),
        )


def _look_up(edges: list[Edge], known: Known, probability: Probability | None) -> dict[Edge, _Fact]:
    """What is known about each edge."""
    distinct = list(dict.fromkeys(edges))
    if not distinct:
        return {}
    array = np.array(distinct, np.int64)
    is_known = known(array)
    facts = {edge: _Fact(bool(k)) for edge, k in zip(distinct, is_known, strict=True)}
    if probability is not None and not is_known.all():
        chances = probability(array[~is_known]).tolist()
        unknown = (edge for edge, fact in facts.items() if not fact.known)
        facts |= {edge: _Fact(False, p) for edge, p in zip(unknown, chances, strict=True)}
    return facts


def _status(fact: _Fact, *, negated: bool) -> Status:
    if fact.known:
        return Status.DENIED if negated else Status.KNOWN
    if negated:
        return Status.NOT_KNOWN
    return Status.MISSING if fact.probability is None else Status.PREDICTED
