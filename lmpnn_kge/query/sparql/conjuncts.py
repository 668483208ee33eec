"""Conjuncts back to formulas: the way from the normal form to text that people read."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from lmpnn_kge.query.compiler import simpler_group, without_equalities
from lmpnn_kge.query.formula import (
    Atom,
    Constant,
    Equal,
    Formula,
    Not,
    Term,
    Variable,
    conjunction,
    free_variables,
    map_terms,
    terms,
)
from lmpnn_kge.query.iri import BLANK
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, scoped, unscoped


def simplified(conjunct: Conjunct) -> Conjunct | None:
    """The same conjunct without equalities of its bound variables; None if it can never hold.

    A conjunct without any literals and groups always holds.
    """
    return _without_trivial(without_equalities(conjunct)[0])


def _without_trivial(conjunct: Conjunct) -> Conjunct | None:
    literals = dict.fromkeys(conjunct.literals)
    groups: dict[Conjunct, None] = {}
    for group in map(_without_trivial, map(simpler_group, conjunct.groups)):
        match group:
            case None:
                continue
            case Conjunct((), ()):
                return None
            case Conjunct((SignedAtom(atom, negated),), (), ()):
                literals[SignedAtom(atom, not negated)] = None
            case _:
                groups[group] = None
    if any(literal.negated and _is_trivial(literal) for literal in literals):
        return None
    kept = tuple(literal for literal in literals if not _is_trivial(literal))
    atoms = [literal for literal in kept if isinstance(literal.atom, Atom) and not literal.negated]
    binding = {term for atom in atoms for term in atom.terms}
    ranging = (SignedAtom(Equal(v, v)) for v in conjunct.bound if v not in binding)
    kept = (*(literal for literal in ranging if literal in literals), *kept)
    return _with_bound(Conjunct(kept, tuple(groups)), conjunct.bound)


def _is_trivial(literal: SignedAtom) -> bool:
    """Whether a literal says that a term equals itself."""
    return isinstance(literal.atom, Equal) and literal.atom.left == literal.atom.right


def _with_bound(conjunct: Conjunct, bound: tuple[Variable, ...]) -> Conjunct:
    present = set(conjunct.terms)
    return replace(conjunct, bound=tuple(variable for variable in bound if variable in present))


def conjunct_formula(conjunct: Conjunct) -> Formula:
    """A simplified conjunct as a formula, in which its variables are read as it binds them.

    A variable that no positive atom binds has an equality with itself, `?x = ?x`, so that it is
    not read as one of the negation around its only other occurrence.
    """
    parts: list[Formula] = [
        Not(literal.atom) if literal.negated else literal.atom for literal in conjunct.literals
    ]
    parts += [Not(conjunct_formula(group)) for group in conjunct.groups]
    return conjunction(parts)


def exact_formula(conjunct: Conjunct) -> Formula:
    """Any conjunct as a formula with the same meaning, in names that can be written."""
    return with_plain_names(conjunct_formula(_with_ranges(scoped(conjunct))))


def _with_ranges(conjunct: Conjunct) -> Conjunct:
    """The conjunct with `?x = ?x` for a variable that would be read inside the only negation."""
    groups = tuple(map(_not_an_inequality, map(_with_ranges, conjunct.groups)))
    is_denied = [lit.negated and isinstance(lit.atom, Atom) for lit in conjunct.literals]
    parts = [set(literal.terms) for literal in conjunct.literals]
    asserted = set().union(*(p for p, d in zip(parts, is_denied, strict=True) if not d))
    denied = [p for p, d in zip(parts, is_denied, strict=True) if d]
    denied += [set(group.terms) for group in groups]
    ranges = tuple(
        SignedAtom(Equal(variable, variable))
        for variable in conjunct.bound
        if variable not in asserted and sum(variable in part for part in denied) == 1
    )
    return replace(conjunct, literals=(*ranges, *conjunct.literals), groups=groups)


def _not_an_inequality(group: Conjunct) -> Conjunct:
    """A denied group that does not read as an inequality, which is about some entity: ? != ?x."""
    match group:
        case Conjunct((SignedAtom(Equal(left), False),), ()):
            return replace(group, literals=(*group.literals, SignedAtom(Equal(left, left))))
        case _:
            return group


def with_plain_names(formula: Formula) -> Formula:
    """The formula with variables that can be written: each keeps its name, as far as it is free.

    What follows a ' in the name of a variable, and the number of a group before a dot, only make it
    different from others.
    """
    names: dict[Term, Term] = {variable: variable for variable in free_variables(formula)}
    for term in terms(formula):
        if isinstance(term, Variable) and term not in names:
            name = term.name.partition("'")[0]
            plain = unscoped(Variable(name)).name
            written = re.sub(r"\W", "_", plain)
            if name.startswith(BLANK) or Variable(written).is_free:
                written = "x"
            numbers = itertools.chain([0], itertools.count(2))
            free = (Variable(f"{written}{number or ''}") for number in numbers)
            names[term] = next(v for v in free if v not in names.values())
    return map_terms(formula, lambda term: term if isinstance(term, Constant) else names[term])
