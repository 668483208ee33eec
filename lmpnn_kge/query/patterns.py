"""Query patterns: formulas whose relations and entities are places to be filled.

They are written in the field's abstract form: `s1`, `s2`, … are entities, `e1`, … existential
variables, `f` the free one, and every relation is a place: r1(s1,e1)&!r2(e1,f).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import (
    FREE,
    And,
    Atom,
    Constant,
    Equal,
    Formula,
    Not,
    Or,
    Term,
    Variable,
    literals,
    terms,
    to_text,
)
from lmpnn_kge.query.parser import parse_any

#: The 14 types of BetaE, in the order of the field's tables.
BETAE = {
    "1p": "r1(s1,f)",
    "2p": "r1(s1,e1)&r2(e1,f)",
    "3p": "r1(s1,e1)&r2(e1,e2)&r3(e2,f)",
    "2i": "r1(s1,f)&r2(s2,f)",
    "3i": "r1(s1,f)&r2(s2,f)&r3(s3,f)",
    "pi": "r1(s1,e1)&r2(e1,f)&r3(s2,f)",
    "ip": "r1(s1,e1)&r2(s2,e1)&r3(e1,f)",
    "2u": "r1(s1,f)|r2(s2,f)",
    "up": "(r1(s1,e1)|r2(s2,e1))&r3(e1,f)",
    "2in": "r1(s1,f)&!r2(s2,f)",
    "3in": "r1(s1,f)&r2(s2,f)&!r3(s3,f)",
    "inp": "r1(s1,e1)&!r2(s2,e1)&r3(e1,f)",
    "pin": "r1(s1,e1)&r2(e1,f)&!r3(s2,f)",
    "pni": "!(r1(s1,e1)&r2(e1,f))&r3(s2,f)",
}

#: What A_P averages: types without negation; and A_N: those with it.
POSITIVE = ("1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up")
NEGATIVE = ("2in", "3in", "inp", "pin", "pni")

#: Types beyond operator trees, as in the EFO-1 benchmarks.
EFO1 = {
    "pni-efo1": "r1(s1,e1)&!r2(e1,f)&r3(s2,f)",
    "2il": "r1(s1,f)&r2(e1,f)",
    "3il": "r1(s1,f)&r2(s2,f)&r3(e1,f)",
    "2m": "r1(s1,e1)&r2(e1,f)&r3(e1,f)",
    "2nm": "r1(s1,e1)&r2(e1,f)&!r3(e1,f)",
    "3mp": "r1(s1,e1)&r2(e1,e2)&r3(e2,f)&r4(e1,e2)",
    "3pm": "r1(s1,e1)&r2(e1,e2)&r3(e2,f)&r4(e2,f)",
    "im": "r1(s1,e1)&r2(s2,e1)&r3(e1,f)&r4(e1,f)",
    "3c": "r1(s1,e1)&r2(e1,f)&r3(s2,e2)&r4(e2,f)&r5(e1,e2)",
    "3cm": "r1(s1,e1)&r2(e1,f)&r3(s2,e2)&r4(e2,f)&r5(e1,e2)&r6(e1,f)",
    "coauthor": "r1(f,e1)&r2(e1,s1)&r1(f,e2)&r1(e3,e2)&f!=e3",
}


_PLACES = {name: place for place, name in enumerate([*BETAE, *EFO1])}


def ordered(names: Iterable[str]) -> list[str]:
    """Names of types in the order of the field's tables, then all others by name."""
    return sorted(names, key=lambda name: (_PLACES.get(name, len(_PLACES)), name))


@dataclass(frozen=True)
class Pattern:
    """A formula over places: constants and relations are filled in order of first occurrence."""

    formula: Formula

    @property
    def constants(self) -> list[str]:
        return [term.name for term in terms(self.formula) if isinstance(term, Constant)]

    @property
    def relations(self) -> list[str]:
        atoms = (literal for literal in literals(self.formula) if isinstance(literal, Atom))
        return list(dict.fromkeys(atom.relation for atom in atoms))

    def __str__(self) -> str:
        return to_text(_map_terms(self.formula, _as_place)).replace(" ", "")


def parse_pattern(text: str) -> Pattern:
    """Read a pattern in the abstract form."""
    formula = _map_terms(parse_any(text), lambda term: _from_place(term, text))
    if FREE not in terms(formula):
        raise QueryError("the pattern asks for nothing: write f for what is looked for", text, 0)
    return Pattern(formula)


def named_patterns(*files: str | Path) -> dict[str, Pattern]:
    """The built-in patterns by name, with a user's own from YAML files of `name: pattern`."""
    texts: dict[str, str] = {**BETAE, **EFO1}
    for file in files:
        texts |= _read(Path(file))
    return {name: parse_pattern(text) for name, text in texts.items()}


def _read(file: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise QueryError(f"{file} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(text, str) for name, text in content.items()
    ):
        raise QueryError(f"{file} must hold lines of the form `name: pattern`")
    return content


def _from_place(term: Term, text: str) -> Term:
    if isinstance(term, Variable):
        raise QueryError("a pattern has f and e1, e2, … in place of ? and ?x", text, 0)
    if term.name == "f":
        return FREE
    if re.fullmatch(r"e\d*", term.name):
        return Variable(term.name)
    if re.fullmatch(r"s\d*", term.name):
        return term
    raise QueryError(
        f"{term.name!r} is none of s1, s2, … (entities), e1, … (existential) and f (free)",
        text,
        term.column,
    )


def _as_place(term: Term) -> Term:
    return Constant(term.name or "f") if isinstance(term, Variable) else term


def _map_terms(formula: Formula, change: Any) -> Formula:
    match formula:
        case Atom(relation, head, tail, column):
            return Atom(relation, change(head), change(tail), column)
        case Equal(left, right):
            return Equal(change(left), change(right))
        case Not(body):
            return Not(_map_terms(body, change))
        case And(parts):
            return And(tuple(_map_terms(part, change) for part in parts))
        case Or(parts):
            return Or(tuple(_map_terms(part, change) for part in parts))
