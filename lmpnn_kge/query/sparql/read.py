"""SPARQL as formulas: a SELECT query becomes the formula with the same answers.

rdflib parses the text. Its parse tree is read here rather than its algebra, which loses a FILTER
inside a NOT EXISTS that is joined to another condition by `&&`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lmpnn_kge.errors import QueryError, one_line, short
from lmpnn_kge.query.formula import FREE, Equal, Formula, Not, Or, Term, Variable, conjunction
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, substitute
from lmpnn_kge.query.sparql.conjuncts import conjunct_formula, simplified, with_plain_names
from lmpnn_kge.query.sparql.refusals import refusal, refused_node

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
    """A SELECT query as a formula, and how many answers its LIMIT allows.

    columns has the names of the variables that it selects, in their order; among them are answers,
    which the query asks for.
    """

    formula: Formula
    limit: int | None
    answers: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def answer(self) -> str:
        """The variable that the query asks for, or the first of several."""
        return self.answers[0]


def is_sparql(text: str) -> bool:
    """Whether a text is a SPARQL query rather than a formula."""
    return _BEGINNING.match(text) is not None


def from_sparql(text: str, figures: Collection[str] = ()) -> SelectQuery:
    """Read a SELECT query; QueryError names what cannot be asked.

    Of several variables, the first that is selected is ?1 of the formula, the second ?2, and so on.
    figures are names of variables that may be selected besides them, if no pattern binds them.
    """
    try:
        return _read(text, figures)
    except RecursionError as error:
        raise QueryError("the SPARQL query is too long or nested too deeply") from error


def _read(text: str, figures: Collection[str]) -> SelectQuery:
    try:
        from lmpnn_kge.query.sparql.names import Names
        from lmpnn_kge.query.sparql.patterns import Reader, is_visible
    except ImportError as error:
        raise QueryError(NEEDS_RDFLIB) from error
    prologue, query = _parse(text)
    limit = _limit(query)
    matches = Reader(Names.declared(prologue)).where(query)
    visible = [v for match in matches for v in match.bound if is_visible(v)]
    columns = _columns(query) or list(dict.fromkeys(visible))
    figure_columns = {Variable(name) for name in figures}.difference(visible)
    answers = [column for column in columns if column not in figure_columns]
    if not answers:
        raise QueryError("the query selects 0 variables that a pattern binds; write SELECT ?x")
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
    disjuncts = [simplified(_asking_for(asked, match)) for match in matches]
    formulas = [_formula(disjunct, free) for disjunct in disjuncts if disjunct is not None]
    named = tuple(dict.fromkeys(map(with_plain_names, formulas))) or (_never(free),)
    formula = Or(named) if len(named) > 1 else named[0]
    names = (tuple(variable.name for variable in several) for several in (answers, columns))
    return SelectQuery(formula, limit, *names)


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


def _limit(query: Any) -> int | None:
    """The number after LIMIT, if the query has nothing else around its patterns."""
    if query.name != "SelectQuery":
        raise refused_node(query)
    for clause, word in (
        ("datasetClause", "FROM"),
        ("groupby", "GROUP BY"),
        ("having", "HAVING"),
        ("orderby", "ORDER BY"),
    ):
        if getattr(query, clause):
            raise refusal(word)
    if not query.limitoffset:
        return None
    if query.limitoffset.offset is not None and int(query.limitoffset.offset):
        raise refusal("OFFSET")
    if query.limitoffset.limit is None:
        return None
    limit = int(query.limitoffset.limit)
    if limit == 0:
        raise QueryError("LIMIT 0 asks for no answers; LIMIT is at least 1")
    return min(limit, sys.maxsize)


def _columns(query: Any) -> list[Variable]:
    """The variables that the query names after SELECT; none if it selects all with `*`."""
    for selected in query.projection or ():
        if selected.expr is not None:
            raise refused_node(_innermost(selected.expr))
    return list(dict.fromkeys(Variable(str(item.var)) for item in query.projection or ()))


def _asking_for(asked: dict[Variable, Variable], match: Conjunct) -> Conjunct:
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


def _never(free: Sequence[Variable]) -> Formula:
    """A formula without answers, for conditions that exclude each other."""
    first, *others = free
    return conjunction([Not(Equal(first, first)), *(Equal(first, other) for other in others)])


def _innermost(node: Any) -> Any:
    """The expression in SELECT that has an operator or a function."""
    while getattr(node, "expr", None) is not None and not node.other:
        node = node.expr
    return node
