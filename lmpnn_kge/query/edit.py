"""Edits of a question, as a person makes them in its drawing: text in, text out.

The drawing of a question has a graph for each disjunct. Nodes and edges have the numbers that they
have in a `Diagram`: node 0 is `?`. The text is the only state, so that text and drawing never
disagree. An edit writes a formula with brackets around an OR as a disjunction of its disjuncts,
which means the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from dataclasses import replace

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.drawing.diagram import Diagram
from lmpnn_kge.query.formula import (
    FREE,
    Atom,
    Constant,
    Equal,
    Formula,
    Or,
    Term,
    Variable,
    connected_to,
)
from lmpnn_kge.query.normal_form import (
    Conjunct,
    SignedAtom,
    all_literals,
    normalise,
    scoped,
    substitute,
    unscoped,
)
from lmpnn_kge.query.parser import parse, parse_term
from lmpnn_kge.query.sparql.conjuncts import conjunct_formula, exact_formula, with_plain_names

#: An end of a new edge: the number of a node, a term as in a formula, or None for a new variable.
End = int | str | None

#: A literal by the number of its edge, to what takes its place; None removes it.
Change = Callable[[int, SignedAtom], SignedAtom | None]

EQUALITY = "="


def add_edge(
    question: str,
    disjunct: int,
    relation: str,
    head: End = None,
    tail: End = None,
    *,
    negated: bool = False,
) -> str:
    """Add a condition to a disjunct; the number after the last disjunct begins a new one.

    The relation is written as in a formula, and `=` is equality. An edge at a variable of a denied
    group belongs to that group.
    """
    disjuncts, conjunct, diagram = _opened_part(question, disjunct, or_new=True)
    taken = [place.term for place in diagram.places]
    first = _term(head, diagram, taken)
    second = _term(tail, diagram, [*taken, first])
    if relation == EQUALITY:
        literal = SignedAtom(Equal(first, second), negated)
    else:
        name = parse_term(relation)
        if not isinstance(name, Constant):
            raise QueryError(f"{relation} is a variable; a relation has a name")
        literal = SignedAtom(Atom(name.name, first, second), negated)
    frames = [diagram.places[end].frame for end in (head, tail) if isinstance(end, int)]
    frame = max((number for number in frames if number is not None), default=None)
    disjuncts[disjunct] = _added(conjunct, literal, frame, itertools.count())
    return _text(disjuncts, disjunct)


def negate_edge(question: str, disjunct: int, edge: int) -> str:
    """Turn the sign of an edge."""
    return _changed(question, disjunct, [edge], lambda old: replace(old, negated=not old.negated))


def remove_edge(question: str, disjunct: int, edge: int) -> str:
    """Remove an edge, and everything that is then no longer connected to `?`."""
    return _changed(question, disjunct, [edge], lambda old: None)


def replace_node(question: str, disjunct: int, node: int, by: str | None = None) -> str:
    """Put another term in place of a node: of one box, or of a variable everywhere."""
    disjuncts, conjunct, diagram = _opened_part(question, disjunct)
    old = _place(diagram, node)
    if old == FREE:
        raise QueryError("? is what the question asks for; ask for another variable instead")
    new = _term(by, diagram, [place.term for place in diagram.places])
    if isinstance(old, Variable):
        disjuncts[disjunct] = _substituted(conjunct, {old: new})
        return _text(disjuncts, disjunct)

    def at_node(number: int, literal: SignedAtom) -> SignedAtom:
        link = diagram.links[number]
        head, tail = (
            new if place == node else term
            for place, term in zip((link.head, link.tail), literal.terms, strict=True)
        )
        return replace(literal, atom=_with_terms(literal.atom, head, tail))

    disjuncts[disjunct] = _mapped(conjunct, at_node, itertools.count())
    return _text(disjuncts, disjunct)


def ask_for_node(question: str, disjunct: int, node: int) -> str:
    """Ask for a variable instead of `?`, which becomes a variable."""
    disjuncts, conjunct, diagram = _opened_part(question, disjunct)
    old = _place(diagram, node)
    if not isinstance(old, Variable) or diagram.places[node].frame is not None:
        raise QueryError("only a variable outside of denied groups can be asked for")
    fresh = _fresh([place.term for place in diagram.places])
    disjuncts[disjunct] = _substituted(conjunct, {FREE: fresh, old: FREE})
    return _text(disjuncts, disjunct)


def deny_edges(question: str, disjunct: int, edges: Collection[int]) -> str:
    """Make edges a group that is denied as a whole: no entities are connected in this way."""
    disjuncts, conjunct, _ = _opened_part(question, disjunct)
    if not edges or not all(0 <= edge < len(conjunct.literals) for edge in edges):
        raise QueryError("a group is made of edges that are in no group yet")
    group = Conjunct(tuple(conjunct.literals[edge] for edge in sorted(set(edges))))
    others = tuple(lit for edge, lit in enumerate(conjunct.literals) if edge not in edges)
    disjuncts[disjunct] = replace(conjunct, literals=others, groups=(*conjunct.groups, group))
    return _text(disjuncts, disjunct)


def allow_edge(question: str, disjunct: int, edge: int) -> str:
    """Take the denied group of an edge apart: its conditions belong to what is around it."""
    disjuncts, conjunct, diagram = _opened_part(question, disjunct)
    frame = diagram.links[_number(edge, len(diagram.links), "edge")].frame
    if frame is None:
        raise QueryError("this edge is in no denied group")
    disjuncts[disjunct] = _without_group(conjunct, frame, itertools.count())
    return _text(disjuncts, disjunct)


def remove_disjunct(question: str, disjunct: int) -> str:
    """Remove one part of a disjunction."""
    disjuncts = _disjuncts(question)
    disjuncts[_number(disjunct, len(disjuncts), "part")] = Conjunct()
    return _text(disjuncts, disjunct)


def _changed(
    question: str,
    disjunct: int,
    edges: Collection[int],
    change: Callable[[SignedAtom], SignedAtom | None],
) -> str:
    """Change the literals of edges."""
    disjuncts, conjunct, diagram = _opened_part(question, disjunct)
    chosen = {_number(edge, len(diagram.links), "edge") for edge in edges}
    disjuncts[disjunct] = _mapped(
        conjunct,
        lambda number, literal: change(literal) if number in chosen else literal,
        itertools.count(),
    )
    return _text(disjuncts, disjunct)


def _disjuncts(question: str) -> list[Conjunct]:
    disjuncts = list(normalise(parse(question))) if question.strip() else []
    if any(len(disjunct.free) > 1 for disjunct in disjuncts):
        raise QueryError("a question with several ? is changed in its text only")
    return disjuncts


def _opened_part(
    question: str, number: int, *, or_new: bool = False
) -> tuple[list[Conjunct], Conjunct, Diagram]:
    """All disjuncts, and one of them to change, with its diagram, which has the same terms."""
    disjuncts = _disjuncts(question)
    if or_new and number == len(disjuncts):
        disjuncts.append(Conjunct())
    conjunct = disjuncts[_number(number, len(disjuncts), "part")]
    return disjuncts, scoped(conjunct), Diagram.of(conjunct)


def _number(number: int, count: int, what: str) -> int:
    if not 0 <= number < count:
        raise QueryError(f"the question has no {what} {number}; it has {count}, numbered from 0")
    return number


def _place(diagram: Diagram, node: int) -> Term:
    return diagram.places[_number(node, len(diagram.places), "node")].term


def _term(end: End, diagram: Diagram, taken: Collection[Term]) -> Term:
    """An end of an edge as a term."""
    if end is None:
        return _fresh(taken)
    return _place(diagram, end) if isinstance(end, int) else parse_term(end)


def _fresh(taken: Collection[Term]) -> Variable:
    """A variable with the first free name: ?x, ?y, ?z, ?x2, …"""
    names = {unscoped(term).name for term in taken if isinstance(term, Variable)}
    candidates = (f"{letter}{n or ''}" for n in itertools.chain([0], itertools.count(2))
                  for letter in "xyz")  # fmt: skip
    return Variable(next(name for name in candidates if name not in names))


def _with_terms(atom: Atom | Equal, head: Term, tail: Term) -> Atom | Equal:
    return replace(atom, head=head, tail=tail) if isinstance(atom, Atom) else Equal(head, tail)


def _mapped(conjunct: Conjunct, change: Change, numbers: itertools.count[int]) -> Conjunct:
    """The conjunct with changed literals, numbered as the links of its diagram."""
    literals = [change(next(numbers), literal) for literal in conjunct.literals]
    groups = tuple(_mapped(group, change, numbers) for group in conjunct.groups)
    return replace(
        conjunct,
        literals=tuple(literal for literal in literals if literal is not None),
        groups=tuple(group for group in groups if group.literals or group.groups),
    )


def _added(
    conjunct: Conjunct, literal: SignedAtom, frame: int | None, numbers: itertools.count[int]
) -> Conjunct:
    """The conjunct with one more literal, in a numbered group or in none."""
    if frame is None:
        return replace(conjunct, literals=(*conjunct.literals, literal))
    groups = []
    for group in conjunct.groups:
        is_meant = next(numbers) == frame
        groups.append(_added(group, literal, None if is_meant else frame, numbers)
                      if is_meant or group.groups else group)  # fmt: skip
    return replace(conjunct, groups=tuple(groups))


def _without_group(conjunct: Conjunct, frame: int, numbers: itertools.count[int]) -> Conjunct:
    """The conjunct with what was in a numbered group in place of that group."""
    literals, groups = [*conjunct.literals], list[Conjunct]()
    for group in conjunct.groups:
        if next(numbers) == frame:
            literals += group.literals
            groups += group.groups
        else:
            groups.append(_without_group(group, frame, numbers))
    return replace(conjunct, literals=tuple(literals), groups=tuple(groups))


def _substituted(conjunct: Conjunct, terms: dict[Term, Term]) -> Conjunct:
    """The conjunct with other terms everywhere, also in groups that bind them."""
    free = replace(conjunct, bound=(), groups=tuple(_unbound(g) for g in conjunct.groups))
    return substitute(free, terms)


def _unbound(conjunct: Conjunct) -> Conjunct:
    return replace(conjunct, bound=(), groups=tuple(map(_unbound, conjunct.groups)))


def _text(disjuncts: list[Conjunct], edited: int) -> str:
    """The question that is left; the edited disjunct is read as a person would read its text."""
    formulas: list[Formula] = []
    for number, conjunct in enumerate(disjuncts):
        if number != edited:
            formulas.append(exact_formula(conjunct))
        elif (connected := _connected(scoped(conjunct))) is not None:
            formulas.append(with_plain_names(conjunct_formula(connected)))
    if not formulas:
        return ""
    formula = Or(tuple(formulas)) if len(formulas) > 1 else formulas[0]
    normalise(formula)  # an edit must not make a question that is refused
    return str(formula)


def _connected(conjunct: Conjunct) -> Conjunct | None:
    """What is connected to `?`; None if nothing is."""
    kept = set(connected_to(FREE, [literal.atom for literal in all_literals(conjunct)]))

    def keep(number: int, literal: SignedAtom) -> SignedAtom | None:
        return literal if literal.atom in kept else None

    rest = _mapped(conjunct, keep, itertools.count())
    return rest if rest.literals or rest.groups else None
