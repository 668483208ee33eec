"""Logical formulas: one syntax tree for questions and for patterns. `str` prints it as text.

    borders(Germany, ?) & !currency(?, Euro)
    capital(?x, ?) & continent(?x, Asia)
    !(borders(France, ?x) & borders(?x, ?)) & continent(?, Europe)

`?` is what the formula asks for, `?x` is some entity. A variable is quantified in the smallest part
of the formula that has all its occurrences: in the last example inside the negation, which says "no
path". Each part of a disjunction is read by itself and has its own variables. An inequality is not
a negation but a literal: `? != ?x` says that `?` differs from some `?x`.

A formula that asks for several entities at once numbers them, and its answers are tuples:

    borders(?1, ?2) & continent(?1, Asia) & continent(?2, Europe)
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TypeVar

from lmpnn_kge.errors import QueryError
from lmpnn_kge.notebook import html_picture, html_text

#: Names that need no quotes.
BARE = re.compile(r"[\w/\-:.+]+")

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True)
class Constant:
    """A named entity; in a pattern, a place for one."""

    name: str
    column: int = field(default=0, compare=False, repr=False)  # its position in the text

    def __str__(self) -> str:
        return _quoted(self.name)


@dataclass(frozen=True)
class Variable:
    """`?name`; the free variables `?`, or `?1`, `?2`, …, stand for the answer."""

    name: str = ""

    @property
    def is_free(self) -> bool:
        return not self.name or (self.name.isascii() and self.name.isdigit())

    def __str__(self) -> str:
        return f"?{self.name}"


FREE = Variable()

Term = Constant | Variable


class _Drawn:
    """Anything that a notebook draws as a query graph."""

    def _repr_html_(self) -> str:
        draw = import_module("lmpnn_kge.query.draw").draw  # which imports this module
        try:
            return html_picture(draw(self), str(self))
        except QueryError:  # there is no query graph of it
            return f"<code>{html_text(str(self))}</code>"


@dataclass(frozen=True)
class Atom(_Drawn):
    """relation(head, tail)"""

    relation: str
    head: Term
    tail: Term
    column: int = field(default=0, compare=False, repr=False)

    @property
    def terms(self) -> tuple[Term, Term]:
        return self.head, self.tail

    def map_terms(self, change: Callable[[Term], Term]) -> Atom:
        """The same relation between changed terms."""
        return replace(self, head=change(self.head), tail=change(self.tail))

    def __str__(self) -> str:
        return f"{_quoted(self.relation)}({self.head}, {self.tail})"


@dataclass(frozen=True)
class Equal(_Drawn):
    """left = right"""

    left: Term
    right: Term

    @property
    def terms(self) -> tuple[Term, Term]:
        return self.left, self.right

    def map_terms(self, change: Callable[[Term], Term]) -> Equal:
        """The equality of changed terms."""
        return Equal(change(self.left), change(self.right))

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True)
class Not(_Drawn):
    """The negation of a formula."""

    body: Formula

    def __str__(self) -> str:
        if isinstance(self.body, Equal):
            return f"{self.body.left} != {self.body.right}"
        return f"!{_bracketed(self.body, And, Or)}"


@dataclass(frozen=True)
class And(_Drawn):
    """A conjunction of two or more parts; a conjunction among the parts is flattened."""

    parts: tuple[Formula, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat(And, self.parts))

    def __str__(self) -> str:
        return " & ".join(_bracketed(part, Or) for part in self.parts)


@dataclass(frozen=True)
class Or(_Drawn):
    """A disjunction of two or more parts; a disjunction among the parts is flattened."""

    parts: tuple[Formula, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat(Or, self.parts))

    def __str__(self) -> str:
        return " | ".join(map(str, self.parts))


Formula = Atom | Equal | Not | And | Or

Piece = TypeVar("Piece", bound=Formula)


def conjunction(parts: Iterable[Formula]) -> Formula:
    """The conjunction of one or more parts; a single part is returned as it is."""
    several = tuple(parts)
    return And(several) if len(several) > 1 else several[0]


def literals(formula: Formula) -> Iterator[Atom | Equal]:
    """The atoms and equalities of a formula, from left to right, without their signs."""
    match formula:
        case Atom() | Equal():
            yield formula
        case Not(body):
            yield from literals(body)
        case And(parts) | Or(parts):
            for part in parts:
                yield from literals(part)


def terms(formula: Formula) -> list[Term]:
    """The terms of a formula, each once, in the order of their first occurrence."""
    return list(dict.fromkeys(term for literal in literals(formula) for term in literal.terms))


def free_among(several: Iterable[Term]) -> tuple[Variable, ...]:
    """The free variables among some terms, each once, in the order of their numbers."""
    free = {term for term in several if isinstance(term, Variable) and term.is_free}
    return tuple(sorted(free, key=lambda variable: (len(variable.name), variable.name)))


def free_variables(formula: Formula) -> tuple[Variable, ...]:
    """The variables that a formula asks for: `?`, or `?1`, `?2`, …"""
    return free_among(terms(formula))


def map_literals(formula: Formula, change: Callable[[Atom | Equal], Formula]) -> Formula:
    """The formula with every atom and equality changed."""
    match formula:
        case Atom() | Equal():
            return change(formula)
        case Not(body):
            return Not(map_literals(body, change))
        case And(parts):
            return And(tuple(map_literals(part, change) for part in parts))
        case Or(parts):
            return Or(tuple(map_literals(part, change) for part in parts))


def map_terms(formula: Formula, change: Callable[[Term], Term]) -> Formula:
    """The formula with every term changed."""
    return map_literals(formula, lambda literal: literal.map_terms(change))


def has_negation(formula: Formula) -> bool:
    """Whether a formula denies an atom; an inequality is not a negation."""
    match formula:
        case Not(body):
            return not isinstance(body, Equal)
        case And(parts) | Or(parts):
            return any(map(has_negation, parts))
        case _:
            return False


def connected_to(term: Term, pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces that are connected to a term, directly or through shared terms of other pieces.

    Each comes after the pieces that connect it; otherwise the given order is kept.
    """
    several = list(pieces)
    having: dict[Term, list[int]] = {}  # term -> the positions of its pieces
    for position, piece in enumerate(several):
        for own in terms(piece):
            having.setdefault(own, []).append(position)
    connected: dict[int, Piece] = {}
    waiting = having.pop(term, [])  # a heap of the positions that something has reached
    while waiting:
        position = heapq.heappop(waiting)
        if position not in connected:
            connected[position] = several[position]
            for other in terms(several[position]):
                for reached in having.pop(other, []):
                    heapq.heappush(waiting, reached)
    return list(connected.values())


def _flat(operator: type[And] | type[Or], parts: tuple[Formula, ...]) -> tuple[Formula, ...]:
    assert len(parts) > 1
    return tuple(
        inner for part in parts for inner in (part.parts if isinstance(part, operator) else (part,))
    )


def _bracketed(formula: Formula, *operators: type[Formula]) -> str:
    """The text of a formula, in brackets if it is one of the operators."""
    return f"({formula})" if isinstance(formula, operators) else str(formula)


def _quoted(name: str) -> str:
    if BARE.fullmatch(name):
        return name
    return '"' + "".join(_ESCAPES.get(character, character) for character in name) + '"'
