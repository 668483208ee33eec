"""Random formulas and small graphs, and what a formula means by trying every assignment."""

import itertools
from collections.abc import Mapping

from hypothesis import strategies as st

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
    terms,
)

ENTITIES, RELATIONS = 4, 2

names = st.text(min_size=1, max_size=6)


def formulas(entity_names=names, relation_names=names, leaves: int = 5):
    """Formulas about `?`, up to three other variables and some entities."""
    variable = st.sampled_from([FREE, FREE, FREE, Variable("x"), Variable("y"), Variable("z")])
    term = variable | st.builds(Constant, entity_names)
    atom = st.builds(Atom, relation_names, term, term)
    literal = atom | atom | atom | st.builds(Equal, term, term)
    return st.recursive(
        literal,
        lambda inner: (
            st.builds(Not, inner)
            | st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
            | st.builds(Or, st.lists(inner, min_size=2, max_size=2).map(tuple))
        ),
        max_leaves=leaves,
    )


graphs = st.sets(
    st.tuples(
        st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)
    ),
    max_size=14,
)


def brute_force(formula: Formula, triples: set[tuple[int, int, int]]) -> list[int]:
    """The answers by definition: entities are named e0, e1, …, relations r0, r1, …"""
    inside = {term for term in terms(formula) if isinstance(term, Variable)} - {FREE}
    return [entity for entity in range(ENTITIES) if holds(formula, {FREE: entity}, inside, triples)]


def holds(
    formula: Formula, values: Mapping[Term, int], inside: set[Variable], triples: set
) -> bool:
    """Whether a formula is true; the variables `inside` occur in it and nowhere else.

    A variable is quantified at the smallest part that has all its occurrences; the parts of a
    disjunction have variables of their own.
    """

    def value(term: Term) -> int:
        return values[term] if isinstance(term, Variable) else int(term.name[1:])

    parts = formula.parts if isinstance(formula, And | Or) else ()
    if isinstance(formula, Not) and not isinstance(formula.body, Equal):
        return not holds(formula.body, values, inside, triples)
    within = [inside & set(terms(part)) for part in parts]
    if isinstance(formula, Or):
        here = set()
    elif isinstance(formula, And):
        here = {v for v in inside if sum(v in some for some in within) > 1}
    else:
        here = inside
    order = sorted(here, key=lambda v: v.name)
    for chosen in itertools.product(range(ENTITIES), repeat=len(order)):
        extended = {**values, **dict(zip(order, chosen, strict=True))}
        values_of = [
            holds(part, extended, some - here, triples)
            for part, some in zip(parts, within, strict=True)
        ]
        values, outer = extended, values
        match formula:
            case Atom(relation, head, tail):
                true = (value(head), int(relation[1:]), value(tail)) in triples
            case Equal(left, right):
                true = value(left) == value(right)
            case Not(Equal(left, right)):
                true = value(left) != value(right)
            case And():
                true = all(values_of)
            case Or():
                true = any(values_of)
        values = outer
        if true:
            return True
    return False
