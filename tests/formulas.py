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


def formulas(entity_names=names, relation_names=names, leaves: int = 5, free=(FREE,)):
    """Formulas about `?` or other free variables, up to three bound ones and some entities."""
    bound = [Variable("x"), Variable("y"), Variable("z")]
    variable = st.sampled_from([*free, *free, *free, *bound])
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


def numbered(arity: int) -> tuple[Variable, ...]:
    """The free variables ?1, ?2, …"""
    return tuple(Variable(str(number)) for number in range(1, arity + 1))


def tuple_formulas(entity_names, relation_names, arity: int):
    """Formulas about several free variables, which conditions of any kind connect."""
    free = numbered(arity)

    def link(one: Variable, other: Variable):
        atom = st.builds(Atom, relation_names, st.just(one), st.just(other))
        return atom | atom | st.builds(Not, atom) | st.just(Not(Equal(one, other)))

    links = [link(*ends) for ends in itertools.pairwise(free)]
    rest = formulas(entity_names, relation_names, 3, free)
    part = st.tuples(*links, rest).map(And)
    return part | part | st.tuples(part, part).map(Or)


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


def brute_force_tuples(formula: Formula, triples: set[tuple[int, int, int]], arity: int):
    """The answers of a formula about ?1, ?2, … by definition."""
    free = numbered(arity)
    inside = {term for term in terms(formula) if isinstance(term, Variable)}.difference(free)
    return [
        chosen
        for chosen in itertools.product(range(ENTITIES), repeat=arity)
        if holds(formula, dict(zip(free, chosen, strict=True)), inside, triples)
    ]


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
