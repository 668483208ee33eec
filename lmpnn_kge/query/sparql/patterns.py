"""Graph patterns as matches: what a group in braces says, and what its filters demand.

All rules of SPARQL that depend on which variables have values are applied while reading.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, URIRef
from rdflib.term import Variable as SparqlVariable

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import Atom, Equal, Term, Variable
from lmpnn_kge.query.iri import BLANK
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, substitute
from lmpnn_kge.query.sparql.matches import Matches, all_of, any_of, compared, join, joined
from lmpnn_kge.query.sparql.names import Names, is_iri
from lmpnn_kge.query.sparql.refusals import refusal, refused_node

#: The variables that a surrounding EXISTS has given values.
Outer = frozenset[Variable]
NOTHING: Outer = frozenset()

#: Groups that may be read; one inside an EXISTS is read again for every match around it.
MAX_GROUPS = 2_000

#: Expressions that hold another one if they have no second operand.
_WRAPPERS = (
    "ConditionalOrExpression", "ConditionalAndExpression", "RelationalExpression",
    "AdditiveExpression", "MultiplicativeExpression",
)  # fmt: skip


def is_visible(variable: Variable) -> bool:
    """Whether a variable is one of the query, not of a blank node, a path or an EXISTS."""
    return "'" not in variable.name and not variable.name.startswith(BLANK)


@dataclass
class Reader:
    """Reads the patterns of one query."""

    names: Names
    occurrences: Counter[str] = field(default_factory=Counter)  # of each variable in the query
    blank_nodes: dict[str, int] = field(default_factory=dict)  # the group that has each
    groups_read: int = 0
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def where(self, query: Any) -> Matches:
        """All ways in which the WHERE clause of a query can match."""
        self.occurrences.update(_variables(query))
        matches = self._group(query.where, NOTHING)
        if query.valuesClause:
            matches = joined(matches, self._values(query.valuesClause))
        return matches

    def _group(self, group: Any, outer: Outer) -> Matches:
        """A group in braces: its patterns from left to right, then its filters."""
        if group.name == "SubSelect":
            raise refused_node(group)
        self.groups_read += 1
        if self.groups_read > MAX_GROUPS:
            raise QueryError("the SPARQL query is too large: its groups multiply each other")
        matches = [Conjunct()]
        parts = group.part or []
        for part in parts:
            match part.name:
                case "TriplesBlock":
                    matches = joined(matches, self._triples(part.triples, id(group)))
                case "GroupOrUnionGraphPattern":
                    matches = joined(matches, self._union(part.graph, outer))
                case "InlineData":
                    matches = joined(matches, self._values(part))
                case "MinusGraphPattern":
                    matches = self._minus(matches, part.graph, outer)
                case "Filter":
                    continue
                case _:
                    raise refused_node(part)
        for part in parts:
            if part.name == "Filter":
                matches = any_of(
                    join(match, way)
                    for match in matches
                    for way in self._ways(part.expr, True, outer | set(match.bound))
                )
        return matches

    def _triples(self, triples: Any, group: int) -> Matches:
        return all_of(
            self._path(
                block[place + 1],
                self._term(block[place], group),
                self._term(block[place + 2], group),
            )
            for block in triples
            for place in range(0, len(block), 3)
        )

    def _term(self, node: Any, group: int) -> Term:
        if isinstance(node, BNode) and self.blank_nodes.setdefault(str(node), group) != group:
            raise QueryError(f"the blank node _:{node} is used in two groups; use a variable")
        return self.names.term(node)

    def _path(self, path: Any, head: Term, tail: Term) -> Matches:
        """The ways along a relation or a path of fixed length."""
        if isinstance(path, SparqlVariable):
            raise refusal(f"a variable in place of a relation (?{path})")
        if is_iri(path):
            variables = (term for term in (head, tail) if isinstance(term, Variable))
            atom = Atom(self.names.name(path), head, tail)
            return [Conjunct((SignedAtom(atom),), (), tuple(dict.fromkeys(variables)))]
        match path.name:
            case "PathAlternative":
                return any_of(m for part in path.part for m in self._path(part, head, tail))
            case "PathSequence":
                steps: list[Term] = [self._fresh("x") for _ in path.part[1:]]
                ends = itertools.pairwise([head, *steps, tail])
                pairs = zip(path.part, ends, strict=True)
                return all_of(self._path(part, start, end) for part, (start, end) in pairs)
            case "PathEltOrInverse":
                return self._path(path.part, tail, head)
            case "PathElt" if not path.mod:
                return self._path(path.part, head, tail)
            case "PathElt":
                raise refusal(f"a path with {path.mod}")
            case _:
                raise refused_node(path)

    def _union(self, groups: Any, outer: Outer) -> Matches:
        if (variables := self._any_entity(groups)) is not None:
            every = SignedAtom(Equal(variables[0], variables[0]))
            return [Conjunct((every,), (), tuple(variables))]
        return any_of(match for group in groups for match in self._group(group, outer))

    def _any_entity(self, groups: Any) -> list[Variable] | None:
        """The variables of { ?x ?p ?o } UNION { ?s ?p ?x }, ?x first, if this is the pattern.

        Its other variables must not occur elsewhere.
        """
        triples = [_only_triple(group) for group in groups]
        if len(triples) != 2 or not all(map(_has_only_variables, triples)):
            return None
        (entity, first, object_), (subject, second, same) = triples
        others = Counter([first, second, object_, subject])
        if entity != same or entity in others or {first, second} & {object_, subject}:
            return None
        if any(self.occurrences[str(other)] != count for other, count in others.items()):
            return None
        return [Variable(str(node)) for node in dict.fromkeys([entity, *others])]

    def _values(self, data: Any) -> Matches:
        matches = []
        for row in data.value or []:
            values = [row] if isinstance(row, str | CompValue) else list(row)
            if len(values) != len(data.var):
                raise QueryError(f"VALUES has {len(data.var)} variables, but {len(values)} values")
            pairs = [
                (Variable(str(variable)), self.names.term(value))
                for variable, value in zip(data.var, values, strict=True)
                if type(value) is not str  # UNDEF
            ]
            equal = tuple(SignedAtom(Equal(variable, value)) for variable, value in pairs)
            matches.append(Conjunct(equal, (), tuple(variable for variable, _ in pairs)))
        return any_of(matches)

    def _minus(self, matches: Matches, group: Any, outer: Outer) -> Matches:
        """Remove what a group matches; a match that shares no variable with it stays."""
        if outer:
            raise refusal("MINUS inside EXISTS")
        removed = self._group(group, NOTHING)
        return [self._without(match, removed) for match in matches]

    def _without(self, match: Conjunct, removed: Matches) -> Conjunct:
        known = frozenset(match.bound)
        groups = (self._local(other, known) for other in removed if known & set(other.bound))
        return replace(match, groups=(*match.groups, *groups))

    def _ways(self, node: Any, wanted: bool, known: Outer) -> Matches:
        """The ways in which a condition is true (or false, if that is wanted).

        An error, such as a comparison with a variable without a value, is neither.
        """
        match getattr(node, "name", None):
            case "ConditionalOrExpression" | "ConditionalAndExpression" if node.other:
                operands = [self._ways(o, wanted, known) for o in (node.expr, *node.other)]
                either = (node.name == "ConditionalOrExpression") == wanted
                return any_of(itertools.chain(*operands)) if either else all_of(operands)
            case "RelationalExpression" if node.op in ("=", "!="):
                sides = (self._operand(side, known) for side in (node.expr, node.other))
                return compared(*sides, equal=(node.op == "=") == wanted)
            case "RelationalExpression" if node.op in ("IN", "NOT IN"):
                left, equal = self._operand(node.expr, known), (node.op == "IN") == wanted
                others = [] if isinstance(node.other, URIRef) else node.other  # () is rdf:nil
                operands = [compared(left, self._operand(o, known), equal=equal) for o in others]
                return any_of(itertools.chain(*operands)) if equal else all_of(operands)
            case "RelationalExpression" if node.op:
                raise refusal(f"the comparison {node.op}")
            case name if name in _WRAPPERS and not node.other:
                return self._ways(node.expr, wanted, known)
            case "UnaryNot":
                return self._ways(node.expr, not wanted, known)
            case "Builtin_sameTerm":
                sides = (self._operand(side, known) for side in (node.arg1, node.arg2))
                return compared(*sides, equal=wanted)
            case "Builtin_EXISTS" | "Builtin_NOTEXISTS" as name:
                inner = [self._local(m, known) for m in self._group(node.graph, known)]
                if wanted == (name == "Builtin_EXISTS"):
                    return inner
                return [Conjunct(groups=tuple(inner))]
        raise refused_node(node)

    def _operand(self, node: Any, known: Outer) -> Term | None:
        """A term that is compared; None if it is a variable without a value."""
        while isinstance(node, CompValue) and node.name in _WRAPPERS and not node.other:
            node = node.expr
        if isinstance(node, CompValue) and node.name not in ("pname", "literal"):
            raise refused_node(node)
        term = self.names.term(node)
        return None if isinstance(term, Variable) and term not in known else term

    def _fresh(self, name: str) -> Variable:
        """A variable that differs from all others; without what follows ', it has the name."""
        return Variable(f"{name.partition(chr(39))[0]}'{next(self.numbers)}")

    def _local(self, match: Conjunct, known: Outer) -> Conjunct:
        """A match inside an EXISTS or a MINUS: all variables but the known ones become its own."""
        names: dict[Term, Term] = {v: self._fresh(v.name) for v in match.bound if v not in known}
        own = tuple(v for v in names.values() if isinstance(v, Variable))
        return replace(substitute(match, names), bound=own)


def _only_triple(group: Any) -> list[Any]:
    """The triple of a group that has nothing else."""
    parts = group.part or []
    if [part.name for part in parts] != ["TriplesBlock"] or len(parts[0].triples) != 1:
        return []
    (block,) = parts[0].triples
    return list(block) if len(block) == 3 else []


def _has_only_variables(triple: list[Any]) -> bool:
    return len(triple) == 3 and all(isinstance(node, SparqlVariable) for node in triple)


def _variables(node: Any) -> Iterator[str]:
    """Every occurrence of a variable below a node."""
    if isinstance(node, SparqlVariable):
        yield str(node)
    elif isinstance(node, CompValue):
        for value in node.values():
            yield from _variables(value)
    elif not isinstance(node, str) and isinstance(node, Iterable):
        for value in node:
            yield from _variables(value)
