"""Query patterns: formulas whose entities and relations are places to be filled.

They are written in the abstract form of the literature: `s1`, `s2`, … are places for entities,
`e1`, … existential variables, `f` is the free one, or `f1`, `f2`, … are several, and every relation
is a place: r1(s1,e1)&!r2(e1,f).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lmpnn_kge.errors import QueryError, one_line
from lmpnn_kge.files import read_text
from lmpnn_kge.query.formula import (
    FREE,
    Atom,
    Constant,
    Equal,
    Formula,
    Term,
    Variable,
    free_variables,
    literals,
    map_literals,
    map_terms,
    terms,
)
from lmpnn_kge.query.normal_form import Conjunct, asking_only, normalise
from lmpnn_kge.query.parser import parse_any, with_checked_numbers
from lmpnn_kge.settings.yaml_text import NO_YAML, read_yaml

#: The 14 types of BetaE, in the order of the tables in the literature.
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

#: A_P averages over the types without negation, A_N over those with it.
POSITIVE = ("1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up")
NEGATIVE = ("2in", "3in", "inp", "pin", "pni")

#: Types that are not operator trees, as in the EFO-1 benchmarks.
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

#: Types with four atoms, as in the hard sets.
FOUR = {
    "4p": "r1(s1,e1)&r2(e1,e2)&r3(e2,e3)&r4(e3,f)",
    "4i": "r1(s1,f)&r2(s2,f)&r3(s3,f)&r4(s4,f)",
}

#: Types with two and three free variables, in the manner of the EFO-k benchmarks: a chain, a star,
#: both ends anchored, parallel edges and circles, each also with a negation.
EFOK = {
    "2f-p": "r1(s1,f1)&r2(f1,f2)",
    "2f-ep": "r1(s1,e1)&r2(e1,f1)&r3(f1,f2)",
    "2f-v": "r1(s1,e1)&r2(e1,f1)&r3(e1,f2)",
    "2f-i": "r1(s1,f1)&r2(f1,f2)&r3(s2,f2)",
    "2f-il": "r1(s1,f1)&r2(f1,f2)&r3(e1,f2)",
    "2f-m": "r1(s1,f1)&r2(f1,f2)&r3(f1,f2)",
    "2f-c": "r1(s1,f1)&r2(f1,f2)&r3(s2,e1)&r4(e1,f1)&r5(e1,f2)",
    "3f-p": "r1(s1,f1)&r2(f1,f2)&r3(f2,f3)",
    "3f-c": "r1(s1,f1)&r2(f1,f2)&r3(f2,f3)&r4(f1,f3)",
    "2f-pn": "r1(s1,f1)&r2(f1,f2)&!r3(s2,f2)",
    "2f-in": "r1(s1,f1)&r2(f1,f2)&r3(s2,f2)&!r4(s3,f1)",
    "2f-nm": "r1(s1,f1)&r2(f1,f2)&!r3(f1,f2)",
    "2f-cn": "r1(s1,e1)&r2(e1,f1)&r3(e1,f2)&!r4(f1,f2)",
}

#: All types that have a name.
NAMED = {**BETAE, **FOUR, **EFO1, **EFOK}

_ORDER = {name: number for number, name in enumerate(NAMED)}


def ordered(names: Iterable[str]) -> list[str]:
    """Names of types in the order of the tables in the literature, then all others by name."""
    return sorted(names, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))


@dataclass(frozen=True)
class Pattern:
    """A formula over places, which are filled in the order of their first occurrence.

    A pattern of several free variables can be asked about one of them alone, its focus: which
    entities are in an answer.
    """

    formula: Formula
    focus: Variable | None = None

    @property
    def free(self) -> tuple[Variable, ...]:
        """The variables that it asks for; `?` stands for the focus."""
        return free_variables(self.formula) if self.focus is None else (FREE,)

    def about(self, variable: Variable) -> Pattern:
        """The same pattern, asked about one of its free variables."""
        return replace(self, focus=None if variable == FREE else variable)

    @property
    def disjuncts(self) -> tuple[Conjunct, ...]:
        """The normal form, in which `?` stands for the focus."""
        disjuncts = normalise(self.formula)
        if self.focus is None:
            return disjuncts
        return tuple(asking_only(disjunct, self.focus) for disjunct in disjuncts)

    @property
    def constants(self) -> list[str]:
        """The places for entities."""
        return [term.name for term in terms(self.formula) if isinstance(term, Constant)]

    @property
    def relations(self) -> list[str]:
        """The places for relations."""
        atoms = (literal for literal in literals(self.formula) if isinstance(literal, Atom))
        return list(dict.fromkeys(atom.relation for atom in atoms))

    def fill(self, constants: Sequence[str], relations: Sequence[tuple[str, bool]]) -> Formula:
        """The question that has these names in its places.

        A relation is its name and whether the atom is over its inverse, which is an atom over the
        relation itself with head and tail exchanged.
        """
        entity = dict(zip(self.constants, constants, strict=True))
        relation = dict(zip(self.relations, relations, strict=True))

        def fill_term(term: Term) -> Term:
            return Constant(entity[term.name]) if isinstance(term, Constant) else term

        def fill_literal(literal: Atom | Equal) -> Formula:
            if isinstance(literal, Equal):
                return literal.map_terms(fill_term)
            name, inverse = relation[literal.relation]
            head, tail = map(fill_term, literal.terms)
            return Atom(name, tail, head) if inverse else Atom(name, head, tail)

        return map_literals(self.formula, fill_literal)

    def part(self, formula: Formula) -> tuple[Pattern, list[int], list[int]]:
        """A part of the formula as a pattern, and the columns of its constants and relations."""
        pattern = Pattern(formula)
        constants = [self.constants.index(place) for place in pattern.constants]
        return pattern, constants, [self.relations.index(place) for place in pattern.relations]

    def __str__(self) -> str:
        return str(map_terms(self.formula, _as_place)).replace(" ", "")


def parse_pattern(text: str) -> Pattern:
    """Read a pattern in the abstract form."""
    formula = map_terms(parse_any(text), lambda term: _from_place(term, text))
    if not free_variables(formula):
        raise QueryError("the pattern asks for nothing: write f for the answer", text, 0)
    return Pattern(with_checked_numbers(formula))


def named_patterns(*files: str | Path) -> dict[str, Pattern]:
    """The built-in patterns and those of YAML files with lines `name: pattern`, by name."""
    texts: dict[str, str] = dict(NAMED)
    for file in files:
        texts |= _read(Path(file))
    return {name: parse_pattern(text) for name, text in texts.items()}


def _read(file: Path) -> Mapping[str, str]:
    try:
        content = read_yaml(read_text(file))
    except (OSError, *NO_YAML) as error:
        raise QueryError(f"{file} cannot be read: {one_line(error)}") from error
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(text, str) for name, text in content.items()
    ):
        raise QueryError(f"{file} must hold lines of the form `name: pattern`")
    return content


def _from_place(term: Term, text: str) -> Term:
    """The term that a name of the abstract form stands for."""
    if isinstance(term, Variable):
        raise QueryError("a pattern has f and e1, e2, … instead of ? and ?x", text, 0)
    if re.fullmatch(r"f[0-9]*", term.name):
        return Variable(term.name[1:])
    if re.fullmatch(r"e\d*", term.name):
        return Variable(term.name)
    if re.fullmatch(r"s\d*", term.name):
        return term
    raise QueryError(
        f"{term.name!r} is not a place: write s1, … (entities), e1, … (existential) or f (free)",
        text,
        term.column,
    )


def _as_place(term: Term) -> Term:
    """The name of a term in the abstract form, which has no question marks."""
    if isinstance(term, Constant):
        return term
    return Constant(f"f{term.name}" if term.is_free else term.name)
