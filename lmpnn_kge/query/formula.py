"""Logical formulas: one syntax tree for questions and for abstract patterns, and its printer.

    borders(Germany, ?) & !currency(?, Euro)
    capital(?x, ?) & continent(?x, Asia)
    !(borders(France, ?x) & borders(?x, ?)) & continent(?, Europe)

`?` is what is asked, `?x` some entity. A variable lives in the smallest part of the formula that
has all its occurrences: in the last example inside the negation, which says "no path". The parts of
a disjunction are read each by itself, with variables of their own. An inequality is no negation but
a literal of its own: `? != ?x` says that some `?x` is another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Names that may stand without quotes.
BARE = re.compile(r"[\w/\-:.+]+")

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True)
class Constant:
    """A named entity, or a place for one in a pattern."""

    name: str
    column: int = field(default=0, compare=False, repr=False)  # where it stands in the text


@dataclass(frozen=True)
class Variable:
    """`?name`; without a name it is the free variable, what is asked."""

    name: str = ""


FREE = Variable()

Term = Constant | Variable


@dataclass(frozen=True)
class Atom:
    """relation(head, tail)"""

    relation: str
    head: Term
    tail: Term
    column: int = field(default=0, compare=False, repr=False)

    @property
    def terms(self) -> tuple[Term, Term]:
        return self.head, self.tail


@dataclass(frozen=True)
class Equal:
    """left = right"""

    left: Term
    right: Term

    @property
    def terms(self) -> tuple[Term, Term]:
        return self.left, self.right


@dataclass(frozen=True)
class Not:
    body: Formula


@dataclass(frozen=True)
class And:
    """A conjunction of two parts or more; one within another is the same as one."""

    parts: tuple[Formula, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat(And, self.parts))


@dataclass(frozen=True)
class Or:
    """A disjunction of two parts or more; one within another is the same as one."""

    parts: tuple[Formula, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat(Or, self.parts))


Formula = Atom | Equal | Not | And | Or


def _flat(kind: type[And] | type[Or], parts: tuple[Formula, ...]) -> tuple[Formula, ...]:
    assert len(parts) > 1
    return tuple(
        inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,))
    )


def literals(formula: Formula) -> Iterator[Atom | Equal]:
    """The atoms and equalities of a formula, from left to right."""
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


def exclusions(formula: Formula) -> tuple[Formula, list[Constant]]:
    """A conjunction without what it says of single entities, ? != constant, and those entities."""
    kept, excluded = [], []
    for part in formula.parts if isinstance(formula, And) else (formula,):
        match part:
            case Not(
                Equal(Constant() as other, Variable("")) | Equal(Variable(""), Constant() as other)
            ):
                excluded.append(other)
            case _:
                kept.append(part)
    if not kept:
        return formula, excluded
    return And(tuple(kept)) if len(kept) > 1 else kept[0], excluded


def to_text(formula: Formula) -> str:
    """The formula as a user would write it; parsing it gives the formula again."""
    match formula:
        case Atom(relation, head, tail):
            return f"{_name(relation)}({_term(head)}, {_term(tail)})"
        case Equal(left, right):
            return f"{_term(left)} = {_term(right)}"
        case Not(Equal(left, right)):
            return f"{_term(left)} != {_term(right)}"
        case Not(body):
            return f"!{_bracketed(body, And, Or)}"
        case And(parts):
            return " & ".join(_bracketed(part, Or) for part in parts)
        case Or(parts):
            return " | ".join(to_text(part) for part in parts)


def _bracketed(formula: Formula, *kinds: type[Formula]) -> str:
    text = to_text(formula)
    return f"({text})" if isinstance(formula, kinds) else text


def _term(term: Term) -> str:
    return f"?{term.name}" if isinstance(term, Variable) else _name(term.name)


def _name(name: str) -> str:
    if BARE.fullmatch(name):
        return name
    return '"' + "".join(_ESCAPES.get(character, character) for character in name) + '"'
