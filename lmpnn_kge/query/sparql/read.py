"""SPARQL as formulas: a SELECT query becomes the formula with the same answers.

An ASK query becomes a formula that has an answer if the query is true.

rdflib parses the text. Its parse tree is read here rather than its algebra, which loses a FILTER
inside a NOT EXISTS that is joined to another condition by `&&`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lmpnn_kge.errors import QueryError, one_line, short
from lmpnn_kge.query.formula import FREE, Equal, Formula, Not, Or, Term, Variable, conjunction
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, substitute
from lmpnn_kge.query.sparql.conjuncts import conjunct_formula, simplified, with_plain_names
from lmpnn_kge.query.sparql.modifiers import Order, check_order, innermost, read_modifiers
from lmpnn_kge.query.sparql.refusals import only_at_endpoint, refused_node

#: How a text begins that is SPARQL rather than a formula.
_BEGINNING = re.compile(
    r"""(?: \s | \#[^\n]*\n )*
    (?: PREFIX \s+ \S*: \s* <
      | BASE \s* <
      | SELECT \s* (?: (?:DISTINCT|REDUCED) \s* )? [?$*]
      | (?:SELECT|ASK|CONSTRUCT|DESCRIBE) \b [^{"]* \{
      | DESCRIBE \s* <
    )""",
    re.IGNORECASE | re.VERBOSE,
)

#: What to do if SPARQL cannot be read, because it needs a package that is an extra.
NEEDS_RDFLIB = "SPARQL needs rdflib: pip install 'lmpnn-kge[rdf]'"


class SelectQuery(NamedTuple):
    """A SELECT query as a formula, and which of its answers are wanted.

    columns has the names of the variables that it selects, in their order; among them are answers,
    which the query asks for.
    """

    formula: Formula
    limit: int | None
    answers: tuple[str, ...]
    columns: tuple[str, ...]
    offset: int = 0
    order: tuple[Order, ...] = ()

    @property
    def answer(self) -> str:
        """The variable that the query asks for, or the first of several."""
        return self.answers[0]


class AskQuery(NamedTuple):
    """An ASK query: whether a formula has an answer."""

    formula: Formula


def is_sparql(text: str) -> bool:
    """Whether a text is a SPARQL query rather than a formula."""
    return _BEGINNING.match(text) is not None


def from_sparql(text: str, figures: Collection[str] = ()) -> SelectQuery:
    """Read a SELECT query; QueryError names what a formula cannot say.

    Of several variables, the first that is selected is ?1 of the formula, the second ?2, and so on.
    figures are names of variables that may be selected besides them, if no pattern binds them.
    """
    query = read_sparql(text, figures)
    if isinstance(query, AskQuery):
        raise only_at_endpoint("ASK")
    if query.order:
        raise only_at_endpoint("ORDER BY")
    if query.offset:
        raise only_at_endpoint("OFFSET")
    if query.limit == 0:
        raise QueryError("LIMIT 0 asks for no answers; LIMIT is at least 1")
    return query


def read_sparql(text: str, figures: Collection[str] = ()) -> SelectQuery | AskQuery:
    """Read a query as an endpoint does: it can also be ASK, or have ORDER BY and OFFSET."""
    try:
        return _read(text, figures)
    except RecursionError as error:
        raise QueryError("the SPARQL query is too long or nested too deeply") from error


def _read(text: str, figures: Collection[str]) -> SelectQuery | AskQuery:
    try:
        from lmpnn_kge.query.sparql.names import Names
        from lmpnn_kge.query.sparql.patterns import Reader, is_visible
    except ImportError as error:
        raise QueryError(NEEDS_RDFLIB) from error
    prologue, query = _parse(text)
    if query.name not in ("SelectQuery", "AskQuery"):
        raise refused_node(query)
    limit, offset, order = read_modifiers(query)
    matches = Reader(Names.declared(prologue)).where(query)
    if query.name == "AskQuery":
        return AskQuery(_any_of([_asking_for_something(match) for match in matches], [FREE]))
    visible = [v for match in matches for v in match.bound if is_visible(v)]
    columns = _columns(query) or list(dict.fromkeys(visible))
    unbound = [Variable(name) for name in figures if Variable(name) not in visible]
    answers = [column for column in columns if column not in unbound]
    if not answers:
        raise QueryError("the query selects 0 variables that a pattern binds; write SELECT ?x")
    check_order(order, [variable.name for variable in (*answers, *unbound)])
    for answer in answers:
        if any(answer not in match.bound for match in matches):
            raise QueryError(f"{answer} has no value in a part of the query; bind it in every part")
    if not matches:
        raise QueryError(
            "the SPARQL query can have no answers: a FILTER uses a variable that its own group "
            "does not bind, or VALUES is empty"
        )
    free = [Variable(str(n)) for n in range(1, len(answers) + 1)] if len(answers) > 1 else [FREE]
    asked = dict(zip(answers, free, strict=True))
    formula = _any_of([_asking_for(asked, match) for match in matches], free)
    asked_names = tuple(answer.name for answer in answers)
    names = tuple(column.name for column in columns)
    return SelectQuery(formula, limit, asked_names, names, offset, order)


def _parse(text: str) -> tuple[Any, Any]:
    """The declarations and the query of a text, as rdflib parses them."""
    from pyparsing import ParseBaseException
    from rdflib.plugins.sparql.parser import parseQuery

    try:
        prologue, query = parseQuery(text)
    except ParseBaseException as error:
        line = f"line {error.lineno} of " if "\n" in text else ""
        wrong = error.line[error.column - 1 :].split(maxsplit=1)[:1]
        raise QueryError(
            f"{line}the SPARQL query cannot be read from {short(wrong[0], 30)!r} on"
            if wrong
            else f"{line}the SPARQL query is incomplete",
            error.line,
            error.column - 1,
        ) from error
    except ValueError as error:  # an escape beyond Unicode
        raise QueryError(f"the SPARQL query cannot be read: {one_line(error)}") from error
    return prologue, query


def _columns(query: Any) -> list[Variable]:
    """The variables that the query names after SELECT; none if it selects all with `*`."""
    for selected in query.projection or ():
        if selected.expr is not None:
            raise refused_node(innermost(selected.expr))
    return list(dict.fromkeys(Variable(str(item.var)) for item in query.projection or ()))


def _asking_for(asked: Mapping[Variable, Variable], match: Conjunct) -> Conjunct:
    """A match whose answers are free variables, which it does not bind."""
    # SPARQL has variables such as ?1 for some entity, too.
    names: dict[Term, Term] = {v: Variable(f"x{v.name}'") for v in match.bound if v.is_free}
    names.update(asked.items())
    renamed = substitute(match, names)
    return replace(renamed, bound=tuple(v for v in renamed.bound if v not in asked.values()))


def _formula(disjunct: Conjunct, free: Sequence[Variable]) -> Formula:
    """A disjunct as a formula, which has all free variables even if any entity is an answer."""
    every = tuple(SignedAtom(Equal(v, v)) for v in free if v not in disjunct.terms)
    return conjunct_formula(replace(disjunct, literals=(*every, *disjunct.literals)))


def _asking_for_something(match: Conjunct) -> Conjunct:
    """A match whose answer is `?`: one of its variables or, without any, one of its entities."""
    if match.bound:
        return _asking_for({match.bound[0]: FREE}, match)
    entities = [SignedAtom(Equal(FREE, term)) for term in match.terms]
    return replace(match, literals=(*entities[:1], *match.literals))


def _any_of(matches: list[Conjunct], free: Sequence[Variable]) -> Formula:
    """The disjunction of matches that ask for free variables."""
    formulas = [_formula(match, free) for match in map(simplified, matches) if match is not None]
    named = tuple(dict.fromkeys(map(with_plain_names, formulas))) or (_never(free),)
    return Or(named) if len(named) > 1 else named[0]


def _never(free: Sequence[Variable]) -> Formula:
    """A formula without answers, for conditions that exclude each other."""
    first, *others = free
    return conjunction([Not(Equal(first, first)), *(Equal(first, other) for other in others)])
