"""Reasons: why an entity answers a formula, one checked atom at a time.

An edge is known from training or predicted with a probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from lmpnn_kge.errors import printable
from lmpnn_kge.query.formula import (
    Atom,
    Constant,
    Equal,
    Formula,
    Not,
    Term,
    Variable,
    conjunction,
)
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom


class Status(Enum):
    """What is known about a condition of a formula."""

    KNOWN = "known"
    PREDICTED = "predicted"
    MISSING = "missing"  # neither known nor predicted
    NOT_KNOWN = "not known to hold"  # as a negated atom demands
    DENIED = "known but denied"  # a negated atom, and its edge is known
    NO_PATH = "no path is known"
    DENIED_PATH = "path known but denied"
    OPEN_PATH = "path known but denied, unless an edge is missing"
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
    """One way in which an entity, or a tuple of them, answers. `str` prints it in a few lines."""

    disjunct: Conjunct
    names: Mapping[Term, Name]  # of every term that is not bound in a denied group
    atoms: tuple[CheckedAtom, ...]
    groups: tuple[CheckedGroup, ...] = ()

    @property
    def answer(self) -> Name:
        """The entity that is asked for, or the first of several."""
        return self.answers[0]

    @property
    def answers(self) -> tuple[Name, ...]:
        """The entities that are asked for."""
        return tuple(self.names[variable] for variable in self.disjunct.free)

    @property
    def values(self) -> dict[Variable, Name]:
        """The entities that are asked for, and that of each variable that the disjunct binds."""
        variables = (*self.disjunct.free, *self.disjunct.bound)
        return {variable: self.names[variable] for variable in variables}

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
            f"{variable} = {self.names[variable].label}" for variable in self.disjunct.bound
        )
        answer = ", ".join(name.label for name in self.answers)
        text = f"{answer} with {others}" if others else answer
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


def _truth(status: Status, probability: float | None) -> float:
    """The probability that a condition is true."""
    match status:
        case Status.KNOWN | Status.TRUE:
            return 1.0
        case Status.PREDICTED:
            assert probability is not None
            return probability
        case Status.NOT_KNOWN | Status.NO_PATH | Status.OPEN_PATH:
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
