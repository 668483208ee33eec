"""Formulas as SPARQL: a SELECT query that has the same answers on the same triples.

A disjunct becomes a part of a UNION, a positive atom a triple pattern, and what is denied a FILTER
NOT EXISTS. A variable that no positive atom binds ranges over all entities: over every subject and
object of a triple.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lmpnn_kge.errors import QueryError, short
from lmpnn_kge.query.compiler import simpler_group, without_equalities
from lmpnn_kge.query.formula import Atom, Constant, Equal, Formula, Term, Variable
from lmpnn_kge.query.iri import BLANK, SCHEME, iri_of
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, normalise, scoped, unscoped

#: Names that a prefixed name can end with unescaped, in every SPARQL parser.
_LOCAL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_\-]*[A-Za-z0-9_])?")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

INDENT = "  "


def to_sparql(formula: Formula, limit: int | None = None) -> str:
    """The SPARQL query of a formula, in which every name is an IRI (`iri_of`).

    QueryError if a part of the formula is not connected to `?`, or names a blank node.
    """
    conjuncts = normalise(formula)
    free = conjuncts[0].free
    answers = {variable: f"?answer{variable.name}" for variable in free}
    writer = _Writer({**answers}, {*answers.values()})
    merged = [without_equalities(scoped(conjunct))[0] for conjunct in conjuncts]
    disjuncts = [list(writer.conjunct(conjunct, free)) for conjunct in merged]
    if len(disjuncts) == 1:
        body = _indented(disjuncts[0])
    else:
        body = [f"{INDENT}{{"]
        for number, lines in enumerate(disjuncts):
            body += [f"{INDENT}}} UNION {{"] * (number > 0) + _indented(_indented(lines))
        body.append(f"{INDENT}}}")
    query = [f"SELECT DISTINCT {' '.join(answers.values())} WHERE {{", *body, "}"]
    query += [] if limit is None else [f"LIMIT {limit}"]
    return "\n".join([*[f"PREFIX : <{SCHEME}>", ""] * writer.uses_prefix, *query]) + "\n"


@dataclass
class _Writer:
    """Writes disjuncts, and remembers the names of variables, which SPARQL must allow."""

    names: dict[Variable, str]
    taken: set[str]
    uses_prefix: bool = False

    def conjunct(self, conjunct: Conjunct, free: tuple[Variable, ...] = ()) -> Iterator[str]:
        """The patterns that bind variables, then the conditions on them."""
        literals = dict.fromkeys(conjunct.literals)
        atoms = [a for a in literals if isinstance(a.atom, Atom) and not a.negated]
        bound = {term for literal in atoms for term in literal.terms}
        for variable in free:
            if variable not in bound and (value := _value(variable, literals)) is not None:
                yield f"VALUES {self._term(variable)} {{ {self._term(value[1])} }}"
                literals.pop(value[0])
                bound.add(variable)
        for literal in atoms:
            yield self._triple(literal)
        for variable in (*free, *conjunct.bound):
            if variable not in bound:
                yield self._any_entity(variable)
        for literal in literals:
            if literal not in atoms:
                yield self._condition(literal)
        for group in conjunct.groups:
            yield "FILTER NOT EXISTS {"
            yield from _indented(self.conjunct(simpler_group(group)))
            yield "}"

    def _triple(self, literal: SignedAtom) -> str:
        assert isinstance(literal.atom, Atom)
        head, tail = map(self._term, literal.terms)
        return f"{head} {self._name(literal.atom.relation)} {tail} ."

    def _condition(self, literal: SignedAtom) -> str:
        if isinstance(literal.atom, Equal):
            left, right = map(self._term, literal.terms)
            return f"FILTER ({left} {'!=' if literal.negated else '='} {right})"
        return f"FILTER NOT EXISTS {{ {self._triple(literal)} }}"

    def _any_entity(self, variable: Variable) -> str:
        """A pattern that binds a variable to every subject and object; reading recognises it."""
        name = self._term(variable)
        subject, relation, object_ = (self._unused(word) for word in ("s", "p", "o"))
        return f"{{ {name} {relation} {object_} }} UNION {{ {subject} {relation} {name} }}"

    def _term(self, term: Term) -> str:
        if isinstance(term, Constant):
            return self._name(term.name)
        if term not in self.names:
            written = unscoped(term).name.partition("'")[0]
            self.names[term] = self._unused(written if _VARIABLE.fullmatch(written) else "x")
        return self.names[term]

    def _unused(self, word: str) -> str:
        """A name for a variable that no other one has."""
        names = (f"?{word}{number or ''}" for number in itertools.chain([0], itertools.count(2)))
        name = next(name for name in names if name not in self.taken)
        self.taken.add(name)
        return name

    def _name(self, name: str) -> str:
        """A name as an IRI, prefixed if that is shorter and safe."""
        if name.startswith(BLANK):
            raise QueryError(
                f"{short(name)!r} is a blank node, which SPARQL cannot name; use a variable"
            )
        iri = iri_of(name)
        local = iri.removeprefix(SCHEME)
        if local == iri or not _LOCAL.fullmatch(local):
            return f"<{iri}>"
        self.uses_prefix = True
        return f":{local}"


def _value(
    variable: Variable, literals: dict[SignedAtom, None]
) -> tuple[SignedAtom, Constant] | None:
    """An equality of a variable and a constant, with the constant."""
    for literal in literals:
        if isinstance(literal.atom, Equal) and not literal.negated and variable in literal.terms:
            for term in literal.terms:
                if isinstance(term, Constant):
                    return literal, term
    return None


def _indented(lines: Iterator[str] | list[str]) -> list[str]:
    return [f"{INDENT}{line}" for line in lines]
