"""Disjunctive normal form, in which every variable is bound in the part that it belongs to.

A formula becomes a disjunction of conjuncts. A conjunct has literals and negated groups. A group is
a conjunct with its own variables that is denied as a whole: "there is no path".
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from lmpnn_kge.errors import QueryError, short
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
    connected_to,
    free_among,
    free_variables,
    literals,
    terms,
)

#: Conditions that a formula may have, and disjuncts that it may expand to.
MAX_LITERALS, MAX_DISJUNCTS = 500, 64

#: Conditions that all disjuncts of a formula may have together: a negated disjunction multiplies.
MAX_EXPANDED = 2_000


@dataclass(frozen=True)
class SignedAtom:
    """A literal: an atom or an equality, or the negation of one."""

    atom: Atom | Equal
    negated: bool = False

    @property
    def terms(self) -> tuple[Term, Term]:
        return self.atom.terms


@dataclass(frozen=True)
class Conjunct:
    """∃ bound: literals ∧ ¬group ∧ …"""

    literals: tuple[SignedAtom, ...] = ()
    groups: tuple[Conjunct, ...] = ()
    bound: tuple[Variable, ...] = ()

    @property
    def terms(self) -> list[Term]:
        """All terms except those bound in groups, in the order of first occurrence."""
        inner = (term for group in self.groups for term in group.terms if term not in group.bound)
        own = (term for literal in self.literals for term in literal.terms)
        return list(dict.fromkeys([*own, *inner]))

    @property
    def free(self) -> tuple[Variable, ...]:
        """The variables that it asks for."""
        return free_among(set(self.terms).difference(self.bound))

    @property
    def size(self) -> int:
        """The number of its literals and of those of its groups."""
        return len(self.literals) + sum(group.size for group in self.groups)


@lru_cache(maxsize=256)  # of one pattern, it is needed in several places for each question
def normalise(formula: Formula, *, merge: bool = False) -> tuple[Conjunct, ...]:
    """The disjuncts of a formula; QueryError if it is too large, or not connected to what it asks.

    merge reads every disjunction as a conjunction, as the paper does, so that one disjunct is left.
    """
    if (size := sum(1 for _ in literals(formula))) > MAX_LITERALS:
        raise QueryError(f"the formula has {size:,} conditions; at most {MAX_LITERALS} can be read")
    free = free_variables(formula) or (FREE,)
    variables = {term for term in terms(formula) if isinstance(term, Variable)}.difference(free)
    disjuncts = tuple(dict.fromkeys(_limited(_expand(formula, variables, merge), formula)))
    for disjunct in disjuncts:
        _check_connected(disjunct, formula, free)
    return disjuncts


def _expand(formula: Formula, inside: set[Variable], merge: bool = False) -> list[Conjunct]:
    """The disjuncts of a formula that has all occurrences of the variables `inside`."""
    match formula:
        case Atom() | Equal():
            return [Conjunct((SignedAtom(formula),), (), _sorted(inside))]
        case Not(Equal() as equality):  # ?x != a is about some ?x
            return [Conjunct((SignedAtom(equality, negated=True),), (), _sorted(inside))]
        case Not(body):
            denied = _limited(_merge(list(map(_deny, _expand(body, inside)))), formula)
            return list(_merge([[conjunct] for conjunct in denied])) if merge else denied
        case And(parts):
            own, below = _split(parts, inside)
            expanded = [_expand(part, vs, merge) for part, vs in zip(parts, below, strict=True)]
            return [_bind(c, own) for c in _limited(_merge(expanded), formula)]
        case Or(parts):
            # Each part is read by itself and has its own variables.
            expanded = [_expand(part, inside & set(terms(part)), merge) for part in parts]
            # Inside a negation, any number of parts is one disjunct.
            either = _merge(expanded) if merge else itertools.chain.from_iterable(expanded)
            return _limited(either, formula, most=MAX_LITERALS)


def _split(
    parts: tuple[Formula, ...], inside: set[Variable]
) -> tuple[set[Variable], list[set[Variable]]]:
    """The variables that several parts share, and for each part those that only it has."""
    having = [inside & set(terms(part)) for part in parts]
    counts = Counter(variable for variables in having for variable in variables)
    own = {variable for variable, count in counts.items() if count > 1}
    return own, [variables - own for variables in having]


def _merge(alternatives: list[list[Conjunct]]) -> Iterator[Conjunct]:
    """All conjunctions that take one disjunct of each list; bound variables are kept apart."""
    for chosen in itertools.product(*alternatives):
        merged: dict[SignedAtom, None] = {}
        groups: dict[Conjunct, None] = {}
        bound: dict[Variable, None] = {}
        for conjunct in chosen:
            conjunct = _rename_apart(conjunct, bound)
            merged |= dict.fromkeys(conjunct.literals)
            groups |= dict.fromkeys(conjunct.groups)
            bound |= dict.fromkeys(conjunct.bound)
        yield Conjunct(tuple(merged), tuple(groups), tuple(bound))


def _limited(
    conjuncts: Iterable[Conjunct], formula: Formula, most: int = MAX_DISJUNCTS
) -> list[Conjunct]:
    """All conjuncts; QueryError if they are too many or too large, before the rest is made."""
    disjuncts: list[Conjunct] = []
    size = 0
    for conjunct in conjuncts:
        disjuncts.append(conjunct)
        size += conjunct.size
        if len(disjuncts) > most:
            raise QueryError(f"{short(str(formula))} expands to more than {most} disjuncts")
        if size > MAX_EXPANDED:
            raise QueryError(
                f"{short(str(formula))} expands to more than {MAX_EXPANDED:,} conditions"
            )
    return disjuncts


def _bind(conjunct: Conjunct, variables: set[Variable]) -> Conjunct:
    """Quantify those of the variables that occur in the conjunct."""
    return replace(conjunct, bound=conjunct.bound + _sorted(variables & set(conjunct.terms)))


def _deny(conjunct: Conjunct) -> list[Conjunct]:
    """The disjuncts of the negation: one for each part that can fail by itself."""
    return [denied for part in separate_parts(conjunct) for denied in _deny_part(part)]


def _deny_part(part: Conjunct) -> list[Conjunct]:
    match part:
        case Conjunct((SignedAtom(atom, negated),), (), ()):
            return [Conjunct((SignedAtom(atom, not negated),))]
        case Conjunct((), (group,), ()):  # not not
            return [group]
        case _:
            return [Conjunct(groups=(part,))]


def separate_parts(conjunct: Conjunct) -> list[Conjunct]:
    """The conjunct, cut into the pieces that no bound variable holds together."""
    pieces = [Conjunct(literals=(literal,)) for literal in conjunct.literals]
    pieces += [Conjunct(groups=(group,)) for group in conjunct.groups]
    bound = set(conjunct.bound)
    touching: dict[Term, list[int]] = {variable: [] for variable in conjunct.bound}
    for number, piece in enumerate(pieces):
        for variable in bound.intersection(piece.terms):
            touching[variable].append(number)
    parts, seen = [], set()
    for number in range(len(pieces)):
        if number not in seen:
            together = _connected(number, pieces, touching)
            seen |= together
            parts.append(_joined([pieces[n] for n in sorted(together)], conjunct.bound))
    return parts


def _connected(start: int, pieces: list[Conjunct], touching: dict[Term, list[int]]) -> set[int]:
    """The numbers of the pieces that variables connect to a piece, which pieces touch."""
    together, frontier, followed = {start}, [start], set()
    while frontier:
        for term in pieces[frontier.pop()].terms:
            if term in touching and term not in followed:
                followed.add(term)
                new = [number for number in touching[term] if number not in together]
                together.update(new)
                frontier += new
    return together


def _joined(pieces: list[Conjunct], bound: tuple[Variable, ...]) -> Conjunct:
    """The conjunction of pieces, with those of the bound variables that occur in it."""
    joined = Conjunct(
        tuple(literal for piece in pieces for literal in piece.literals),
        tuple(group for piece in pieces for group in piece.groups),
    )
    occurring = set(joined.terms)
    return replace(joined, bound=tuple(v for v in bound if v in occurring))


def _rename_apart(conjunct: Conjunct, others: Collection[Variable]) -> Conjunct:
    """The conjunct with new names for those of its variables that others have."""
    clashing = [variable for variable in conjunct.bound if variable in others]
    if not clashing:
        return conjunct
    taken = {*others, *conjunct.bound}
    names: dict[Term, Term] = {}
    for variable in clashing:
        # A user's variable has no ' in its name, so that one bound later cannot have this name.
        fresh = (Variable(f"{variable.name}'{number}") for number in itertools.count(2))
        names[variable] = next(v for v in fresh if v not in taken and v not in names.values())
    return substitute(conjunct, names)


def substitute(conjunct: Conjunct, names: dict[Term, Term]) -> Conjunct:
    """Replace terms by others; a group that binds a variable itself keeps it."""

    def change(term: Term) -> Term:
        return names.get(term, term)

    def group(old: Conjunct) -> Conjunct:
        return substitute(old, {t: new for t, new in names.items() if t not in old.bound})

    bound = dict.fromkeys(change(variable) for variable in conjunct.bound)
    return Conjunct(
        tuple(replace(lit, atom=lit.atom.map_terms(change)) for lit in conjunct.literals),
        tuple(map(group, conjunct.groups)),
        tuple(term for term in bound if isinstance(term, Variable)),
    )


def scoped(conjunct: Conjunct, scope: str = "") -> Conjunct:
    """The same conjunct, in which no two groups use one name for their variables.

    The parts of a disjunction may share a name, and denied, they become groups:
    !(r(a, ?x) & s(?x, ?) | t(b, ?x) & u(?x, ?)) gets the variables ?0.x and ?1.x.
    """
    groups = []
    for number, group in enumerate(conjunct.groups):
        inner = f"{scope}{number}."
        names: dict[Term, Term] = {v: Variable(f"{inner}{v.name}") for v in group.bound}
        groups.append(scoped(substitute(group, names), inner))
    return replace(conjunct, groups=tuple(groups))


def unscoped(variable: Variable) -> Variable:
    """The variable as the user wrote it."""
    return Variable(variable.name.rpartition(".")[2])


def all_literals(conjunct: Conjunct) -> Iterator[SignedAtom]:
    """The literals of a conjunct and of its groups."""
    yield from conjunct.literals
    for group in conjunct.groups:
        yield from all_literals(group)


def asking_only(conjunct: Conjunct, variable: Variable) -> Conjunct:
    """The conjunct with `?` for one of its free variables; the others are bound: some entities."""
    others = tuple(other for other in conjunct.free if other != variable)
    return substitute(replace(conjunct, bound=(*conjunct.bound, *others)), {variable: FREE})


def _check_connected(conjunct: Conjunct, formula: Formula, free: tuple[Variable, ...]) -> None:
    atoms = [literal.atom for literal in all_literals(scoped(conjunct))]
    loose = set(atoms).difference(connected_to(free[0], atoms))
    if loose:
        names = dict.fromkeys(
            str(unscoped(term)) if isinstance(term, Variable) else repr(term.name)
            for atom in atoms
            if atom in loose
            for term in atom.terms
        )
        text, loose_terms = short(str(formula)), short(", ".join(names))
        raise QueryError(f"a part of {text} is not connected to {free[0]}: {loose_terms}")
    if len(free) > 1 and (missing := [str(v) for v in free if v not in conjunct.free]):
        raise QueryError(
            f"a part of {short(str(formula))} does not have {', '.join(missing)}; each part of a "
            "disjunction must say something about everything that is asked for"
        )


def _sorted(variables: set[Variable]) -> tuple[Variable, ...]:
    return tuple(sorted(variables, key=lambda variable: variable.name))
