"""Disjunctive normal form: what the formula says, with every variable where it lives.

A formula becomes a disjunction of conjuncts. A conjunct has literals and negated groups; a group
is a conjunct with variables of its own, of which the whole is denied ("there is no path").
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import (
    FREE,
    And,
    Atom,
    Equal,
    Formula,
    Not,
    Or,
    Term,
    Variable,
    terms,
    to_text,
)

#: Disjuncts that a formula may expand to.
MAX_DISJUNCTS = 64


@dataclass(frozen=True)
class Literal:
    """An atom or an equality, or its negation."""

    atom: Atom | Equal
    negated: bool = False

    @property
    def terms(self) -> tuple[Term, Term]:
        return self.atom.terms


@dataclass(frozen=True)
class Conjunct:
    """∃ bound: literals ∧ ¬group ∧ …"""

    literals: tuple[Literal, ...] = ()
    groups: tuple[Conjunct, ...] = ()
    bound: tuple[Variable, ...] = ()

    @property
    def terms(self) -> list[Term]:
        """All terms but those that are bound in groups, in the order of first occurrence."""
        inner = (term for group in self.groups for term in group.terms if term not in group.bound)
        own = (term for literal in self.literals for term in literal.terms)
        return list(dict.fromkeys([*own, *inner]))


def normalise(formula: Formula, *, merge: bool = False) -> tuple[Conjunct, ...]:
    """The disjuncts of a formula; QueryError where one is not about `?` or has a loose part.

    merge reads every disjunction as a conjunction, as the paper does: one disjunct is left.
    """
    variables = {term for term in terms(formula) if isinstance(term, Variable)} - {FREE}
    disjuncts = tuple(dict.fromkeys(_expand(formula, variables, merge)))
    for disjunct in disjuncts:
        _check_connected(disjunct, formula)
    return disjuncts


def _expand(formula: Formula, inside: set[Variable], merge: bool = False) -> list[Conjunct]:
    """The disjuncts of a formula in which the variables `inside` occur and nowhere else."""
    match formula:
        case Atom() | Equal():
            return [Conjunct((Literal(formula),), (), _sorted(inside))]
        case Not(Equal() as equality):  # ?x != a is about some ?x
            return [Conjunct((Literal(equality, negated=True),), (), _sorted(inside))]
        case Not(body):
            denied = _limited(_merge(map(_deny, _expand(body, inside))), formula)
            return list(_merge([conjunct] for conjunct in denied)) if merge else denied
        case And(parts):
            own, below = _split(parts, inside)
            expanded = [_expand(part, vs, merge) for part, vs in zip(parts, below, strict=True)]
            return [_bind(c, own) for c in _limited(_merge(expanded), formula)]
        case Or(parts):
            # Each part is read by itself, with variables of its own.
            found = [_expand(part, inside & set(terms(part)), merge) for part in parts]
            return list(_merge(found)) if merge else [c for part in found for c in part]


def _split(
    parts: tuple[Formula, ...], inside: set[Variable]
) -> tuple[set[Variable], list[set[Variable]]]:
    """The variables that several parts share, and for each part those that only it has."""
    having = [inside & set(terms(part)) for part in parts]
    own = {v for v in inside if sum(v in variables for variables in having) > 1}
    return own, [variables - own for variables in having]


def _merge(alternatives: Iterable[list[Conjunct]]) -> Iterator[Conjunct]:
    """Conjunctions of one disjunct of each; their bound variables are kept apart."""
    for chosen in itertools.product(*alternatives):
        whole = Conjunct()
        for conjunct in chosen:
            conjunct = _rename_apart(conjunct, set(whole.bound))
            whole = Conjunct(
                tuple(dict.fromkeys(whole.literals + conjunct.literals)),
                tuple(dict.fromkeys(whole.groups + conjunct.groups)),
                whole.bound + conjunct.bound,
            )
        yield whole


def _limited(conjuncts: Iterator[Conjunct], formula: Formula) -> list[Conjunct]:
    found = list(itertools.islice(conjuncts, MAX_DISJUNCTS + 1))
    if len(found) > MAX_DISJUNCTS:
        raise QueryError(f"{to_text(formula)} expands to more than {MAX_DISJUNCTS} disjuncts")
    return found


def _bind(conjunct: Conjunct, variables: set[Variable]) -> Conjunct:
    """Quantify variables that occur in the conjunct."""
    return replace(conjunct, bound=conjunct.bound + _sorted(variables & set(conjunct.terms)))


def _deny(conjunct: Conjunct) -> list[Conjunct]:
    """The disjuncts of the negation: one for each part that can fail by itself."""
    return [denied for part in _parts(conjunct) for denied in _deny_part(part)]


def _deny_part(part: Conjunct) -> list[Conjunct]:
    match part:
        case Conjunct((Literal(atom, negated),), (), ()):
            return [Conjunct((Literal(atom, not negated),))]
        case Conjunct((), (group,), ()):
            return [group]
        case _:
            return [Conjunct(groups=(part,))]


def _parts(conjunct: Conjunct) -> list[Conjunct]:
    """The conjunct cut where no bound variable holds it together."""
    pieces = [Conjunct(literals=(literal,)) for literal in conjunct.literals]
    pieces += [Conjunct(groups=(group,)) for group in conjunct.groups]
    for variable in conjunct.bound:
        touching = [piece for piece in pieces if variable in piece.terms]
        pieces = [piece for piece in pieces if variable not in piece.terms]
        pieces.append(
            Conjunct(
                tuple(literal for piece in touching for literal in piece.literals),
                tuple(group for piece in touching for group in piece.groups),
                (*(v for piece in touching for v in piece.bound), variable),
            )
        )
    return pieces


def _rename_apart(conjunct: Conjunct, taken: set[Variable]) -> Conjunct:
    clashing = taken & set(conjunct.bound)
    if not clashing:
        return conjunct
    taken = taken | set(conjunct.bound)
    names: dict[Term, Term] = {}
    for variable in clashing:
        # With a sign that no variable of a text has: one of the same name may be bound later.
        fresh = (Variable(f"{variable.name}'{number}") for number in itertools.count(2))
        names[variable] = next(v for v in fresh if v not in taken and v not in names.values())
    return substitute(conjunct, names)


def substitute(conjunct: Conjunct, names: dict[Term, Term]) -> Conjunct:
    """Put other terms in the place of some; variables bound in groups stay."""

    def change(term: Term) -> Term:
        return names.get(term, term)

    def literal(old: Literal) -> Literal:
        atom = old.atom
        if isinstance(atom, Atom):
            return replace(old, atom=replace(atom, head=change(atom.head), tail=change(atom.tail)))
        return replace(old, atom=Equal(change(atom.left), change(atom.right)))

    def group(old: Conjunct) -> Conjunct:
        return substitute(old, {t: new for t, new in names.items() if t not in old.bound})

    bound = dict.fromkeys(change(variable) for variable in conjunct.bound)
    return Conjunct(
        tuple(map(literal, conjunct.literals)),
        tuple(map(group, conjunct.groups)),
        tuple(term for term in bound if isinstance(term, Variable)),
    )


def signed_literals(conjunct: Conjunct, scope: str = "") -> Iterator[Literal]:
    """All literals of a conjunct, with those of its groups, as they stand in a query graph.

    Of a denied group, the literals next to what lies outside it carry the negation. Its variables
    are named after its place, for two groups may use one name.
    """
    yield from conjunct.literals
    for place, group in enumerate(conjunct.groups):
        inner = f"{scope}{place}."
        names: dict[Term, Term] = {v: Variable(f"{inner}{v.name}") for v in group.bound}
        for literal in signed_literals(substitute(group, names), inner):
            outside = any(
                isinstance(term, Variable) and not term.name.startswith(inner)
                for term in literal.terms
            )
            yield replace(literal, negated=literal.negated != outside)


def denials(conjunct: Conjunct) -> Iterator[Formula]:
    """What a conjunct denies of `?` alone, and what stays true when edges are added."""
    for literal in conjunct.literals:
        alone = FREE in literal.terms and not set(literal.terms) & set(conjunct.bound)
        if alone and isinstance(literal.atom, Equal) and not literal.negated:
            yield Not(literal.atom)
    literals = (replace(literal, negated=False) for literal in conjunct.literals if literal.negated)
    for part in (*(Conjunct((literal,)) for literal in literals), *conjunct.groups):
        shared = set(part.terms) & set(conjunct.bound) - set(part.bound)
        wavering = any(lit.negated and isinstance(lit.atom, Atom) for lit in part.literals)
        if FREE in part.terms and not (shared or wavering or part.groups):
            denied = tuple(Not(lit.atom) if lit.negated else lit.atom for lit in part.literals)
            yield And(denied) if len(denied) > 1 else denied[0]


def _check_connected(conjunct: Conjunct, formula: Formula) -> None:
    pieces = [literal.terms for literal in signed_literals(conjunct)]
    reached: set[Term] = {FREE}
    while touching := [piece for piece in pieces if not reached.isdisjoint(piece)]:
        reached.update(term for piece in touching for term in piece)
        pieces = [piece for piece in pieces if piece not in touching]
    if pieces:
        loose = dict.fromkeys(term for piece in pieces for term in piece)
        names = (
            f"?{term.name.rpartition('.')[2]}" if isinstance(term, Variable) else repr(term.name)
            for term in loose
        )
        raise QueryError(f"a part of {to_text(formula)} is not connected to ?: {', '.join(names)}")


def _sorted(variables: set[Variable]) -> tuple[Variable, ...]:
    return tuple(sorted(variables, key=lambda variable: variable.name))
