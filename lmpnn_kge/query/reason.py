"""Reasons: why an entity answers a formula, one checked atom at a time.

A witness assigns an entity to `?` and to each variable that a disjunct binds. A reason is a witness
whose atoms were looked up: an edge is known from training or predicted with a probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import printable
from lmpnn_kge.query.formula import (
    FREE,
    Atom,
    Constant,
    Equal,
    Formula,
    Not,
    Term,
    Variable,
    conjunction,
)
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, substitute

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
    """An entity for `?` and for each variable that a disjunct of a formula binds.

    paths has for each denied group the probability that its path exists nevertheless: 1 if such a
    path is known, None if only the known edges were searched and there is none.
    """

    disjunct: Conjunct
    values: Mapping[Variable, int]
    paths: tuple[float | None, ...] | None = None


class Status(Enum):
    """What is known about a condition of a formula."""

    KNOWN = "known"
    PREDICTED = "predicted"
    MISSING = "missing"  # neither known nor predicted
    NOT_KNOWN = "not known to hold"  # as a negated atom demands
    DENIED = "known but denied"  # a negated atom, and its edge is known
    NO_PATH = "no path is known"
    DENIED_PATH = "path known but denied"
    TRUE = "true"  # an equality or inequality
    FALSE = "false"


@dataclass(frozen=True)
class Name:
    """The id of an entity or relation, and its label for people."""

    id: str
    label: str


class _Checked:
    """What a status and a probability say, of an atom or of a group."""

    status: Status
    probability: float | None

    @property
    def truth(self) -> float:
        """The probability that the condition is met."""
        return _truth(self.status, self.probability)

    @property
    def words(self) -> str:
        return _words(self.status, self.probability)


@dataclass(frozen=True)
class CheckedAtom(_Checked):
    """A literal of the formula with entities for its terms; relation is None for an equality.

    probability is that of the edge itself, also if the literal is negated.
    """

    literal: SignedAtom
    relation: Name | None
    head: Name
    tail: Name
    status: Status
    probability: float | None = None

    @property
    def negated(self) -> bool:
        return self.literal.negated

    @property
    def text(self) -> str:
        """The atom with labels in it, without its sign, which the status expresses."""
        head, tail = Constant(self.head.label), Constant(self.tail.label)
        if self.relation is not None:
            return printable(str(Atom(self.relation.label, head, tail)))
        equality = Equal(head, tail)
        return printable(str(Not(equality) if self.negated else equality))

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "status": self.status.value,
            "probability": self.probability,
            "negated": self.negated,
            "relation": None if self.relation is None else asdict(self.relation),
            "head": asdict(self.head),
            "tail": asdict(self.tail),
        }


@dataclass(frozen=True)
class CheckedGroup(_Checked):
    """A denied group of the formula; filled has labels for relations and for terms outside it."""

    group: Conjunct
    filled: Conjunct
    status: Status
    probability: float | None = None

    @property
    def text(self) -> str:
        """The group with labels in it, without the negation, which the status expresses."""
        return printable(str(formula_of(self.filled)))

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "status": self.status.value,
            "probability": self.probability,
            "negated": True,
        }


@dataclass(frozen=True, repr=False)
class Reason:
    """One way in which an entity answers a formula. `str` prints it in a few lines."""

    disjunct: Conjunct
    names: Mapping[Term, Name]  # of every term that is not bound in a denied group
    atoms: tuple[CheckedAtom, ...]
    groups: tuple[CheckedGroup, ...] = ()

    @property
    def answer(self) -> Name:
        return self.names[FREE]

    @property
    def values(self) -> dict[Variable, Name]:
        """The entities of `?` and of each variable that the disjunct binds."""
        return {variable: self.names[variable] for variable in (FREE, *self.disjunct.bound)}

    @property
    def checks(self) -> tuple[CheckedAtom | CheckedGroup, ...]:
        return *self.atoms, *self.groups

    @property
    def truth(self) -> float:
        """The product of the probabilities of all conditions."""
        return math.prod(check.truth for check in self.checks)

    @property
    def title(self) -> str:
        """The answer, the entities of the other variables, and the truth if it is not certain."""
        others = ", ".join(
            f"{variable} = {name.label}" for variable, name in self.values.items() if variable.name
        )
        text = f"{self.answer.label} with {others}" if others else self.answer.label
        return printable(text if self.truth == 1 else f"{text}, truth {percent(self.truth)}")

    def lines(self, width: int = 0) -> list[str]:
        """A line for each condition: its status, then what it is about."""
        width = max(width, *(len(check.words) for check in self.checks))
        return [f"{check.words:<{width}}  {check.text}" for check in self.checks]

    def to_json(self) -> dict[str, Any]:
        return {
            "disjunct": str(formula_of(self.disjunct)),
            "values": {str(variable): asdict(name) for variable, name in self.values.items()},
            "truth": self.truth,
            "atoms": [check.to_json() for check in self.checks],
        }

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {line}" for line in self.lines())])

    def __repr__(self) -> str:
        conditions = ", ".join(f"{check.text} {check.words}" for check in self.checks)
        return f"Reason({self.title}: {conditions})"


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


def formula_of(conjunct: Conjunct) -> Formula:
    """A conjunct as a formula."""
    literals: list[Formula] = [
        Not(literal.atom) if literal.negated else literal.atom for literal in conjunct.literals
    ]
    return conjunction([*literals, *(Not(formula_of(group)) for group in conjunct.groups)])


def percent(probability: float) -> str:
    """A probability for people, who should not read a very small one as none."""
    if probability < 0.01:
        return "<1%"
    return ">99%" if probability > 0.99 else f"{probability:.0%}"


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
            {term: self._name(term) for term in (FREE, *disjunct.bound, *disjunct.terms)},
            tuple(self._check(literal, facts) for literal in disjunct.literals),
            tuple(
                self._check_group(group, chance)
                for group, chance in zip(disjunct.groups, paths, strict=True)
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

    def _check_group(self, group: Conjunct, chance: float | None) -> CheckedGroup:
        outside = [term for term in group.terms if term not in group.bound]
        labels: dict[Term, Term] = {term: Constant(self._name(term).label) for term in outside}
        status = Status.DENIED_PATH if chance == 1 else Status.NO_PATH
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


def _truth(status: Status, probability: float | None) -> float:
    """The probability that a condition is true."""
    match status:
        case Status.KNOWN | Status.TRUE:
            return 1.0
        case Status.PREDICTED:
            assert probability is not None
            return probability
        case Status.NOT_KNOWN | Status.NO_PATH:
            return 1.0 - (probability or 0.0)
        case _:
            return 0.0


def _words(status: Status, probability: float | None) -> str:
    """A status for people, with the probability."""
    if probability is None:
        return status.value
    if status is Status.PREDICTED:
        return f"{status.value} {percent(probability)}"
    return f"{status.value}, {percent(probability)} likely"
