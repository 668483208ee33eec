"""Entities that a formula rules out as answers, whatever a network predicts.

Two functions find them, in different ways:

- `exclusions` reads the formula alone. It finds the entities that the formula names as wrong
  answers: Peru in `borders(Chile, ?) & ? != Peru`.
- `denials` reads the normal form, and its result must be asked of a graph. It finds sub-formulas
  that no right answer satisfies: `currency(?, Euro)` in `borders(Germany, ?) & !currency(?, Euro)`.
  The entities that answer one of them by the known edges are ruled out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lmpnn_kge.query.formula import (
    FREE,
    And,
    Atom,
    Constant,
    Equal,
    Formula,
    Not,
    Variable,
    conjunction,
)
from lmpnn_kge.query.normal_form import Conjunct


def exclusions(formula: Formula) -> tuple[Formula, list[Constant]]:
    """A formula without its conditions `? != constant`, and the constants of these.

    A formula that has no other condition stays as it is, because something must be asked.
    """
    kept, excluded = [], []
    for part in formula.parts if isinstance(formula, And) else (formula,):
        match part:
            case Not(
                Equal(Constant() as other, Variable("")) | Equal(Variable(""), Constant() as other)
            ):
                excluded.append(other)
            case _:
                kept.append(part)
    return conjunction(kept) if kept else formula, excluded


def denials(conjunct: Conjunct) -> Iterator[Formula]:
    """Sub-formulas that, once true of an entity, rule it out for good: no new edge undoes them.

    They are about `?` and share no other variable with the rest of the conjunct, so that each can
    be asked by itself; and they have no negated atom, which a new edge could make false.
    """
    for literal in conjunct.literals:
        alone = FREE in literal.terms and not set(literal.terms) & set(conjunct.bound)
        if alone and isinstance(literal.atom, Equal) and not literal.negated:
            yield Not(literal.atom)
    negated = (replace(literal, negated=False) for literal in conjunct.literals if literal.negated)
    for part in (*(Conjunct((literal,)) for literal in negated), *conjunct.groups):
        shared = set(part.terms) & set(conjunct.bound) - set(part.bound)
        wavering = any(lit.negated and isinstance(lit.atom, Atom) for lit in part.literals)
        if FREE in part.terms and not (shared or wavering or part.groups):
            yield conjunction(Not(lit.atom) if lit.negated else lit.atom for lit in part.literals)
