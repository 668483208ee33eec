"""Graph patterns as conjuncts: each conjunct is one way in which a pattern can match.

The variables of a match are known exactly, because nothing is optional: `bound` has them. All rules
of SPARQL that depend on what is bound can therefore be applied while reading.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode
from rdflib.term import Variable as SparqlVariable

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import Atom, Equal, Term, Variable
from lmpnn_kge.query.iri import BLANK
from lmpnn_kge.query.normal_form import MAX_DISJUNCTS, Conjunct, SignedAtom, substitute
from lmpnn_kge.query.sparql.names import Names, is_iri
from lmpnn_kge.query.sparql.refusals import refusal, refused_node

Matches = list[Conjunct]

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
    groups: dict[str, int] = field(default_factory=dict)  # the group that has a blank node
    groups_read: int = 0
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def where(self, query: Any) -> Matches:
        """All ways in which the WHERE clause of a query can match."""
        self.occurrences.update(_variables(query.where))
        matches = self._group(query.where, NOTHING)
        if query.valuesClause:
            matches = _joined(matches, self._values(query.valuesClause))
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
                    matches = _joined(matches, self._triples(part.triples, id(group)))
                case "GroupOrUnionGraphPattern":
                    matches = _joined(matches, self._union(part.graph, outer))
                case "InlineData":
                    matches = _joined(matches, self._values(part))
                case "MinusGraphPattern":
                    matches = self._minus(matches, part.graph, outer)
                case "Filter":
                    continue
                case _:
                    raise refused_node(part)
        for part in parts:
            if part.name == "Filter":
                matches = _limited(
                    _join(match, way)
                    for match in matches
                    for way in self._ways(part.expr, True, outer | set(match.bound))
                )
        return matches

    def _triples(self, triples: Any, group: int) -> Matches:
        matches = [Conjunct()]
        for block in triples:
            for position in range(0, len(block), 3):
                head, relation, tail = block[position : position + 3]
                ends = self._term(head, group), self._term(tail, group)
                matches = _joined(matches, self._path(relation, *ends))
        return matches

    def _term(self, node: Any, group: int) -> Term:
        if isinstance(node, BNode) and self.groups.setdefault(str(node), group) != group:
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
                return _limited(m for part in path.part for m in self._path(part, head, tail))
            case "PathSequence":
                steps: list[Term] = [self._fresh("x") for _ in path.part[1:]]
                ends = itertools.pairwise([head, *steps, tail])
                matches = [Conjunct()]
                for part, (start, end) in zip(path.part, ends, strict=True):
                    matches = _joined(matches, self._path(part, start, end))
                return matches
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
        return _limited(match for group in groups for match in self._group(group, outer))

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
        return _limited(matches)

    def _minus(self, matches: Matches, group: Any, outer: Outer) -> Matches:
        """Remove what a group matches; a match that shares no variable with it stays."""
        if outer:
            raise refusal("MINUS inside EXISTS")
        removed = self._group(group, NOTHING)
        return [
            _without(
                match,
                [self._local(m, frozenset(match.bound)) for m in removed
                 if set(m.bound) & set(match.bound)],
            )
            for match in matches
        ]  # fmt: skip

    def _ways(self, node: Any, wanted: bool, known: Outer) -> Matches:
        """The ways in which a condition is true (or false, if that is wanted).

        An error, such as a comparison with a variable without a value, is neither.
        """
        match getattr(node, "name", None):
            case "ConditionalOrExpression" | "ConditionalAndExpression" if node.other:
                operands = [self._ways(o, wanted, known) for o in (node.expr, *node.other)]
                if (node.name == "ConditionalOrExpression") == wanted:
                    return _limited(itertools.chain(*operands))
                matches = [Conjunct()]
                for operand in operands:
                    matches = _joined(matches, operand)
                return matches
            case "RelationalExpression" if node.op in ("=", "!="):
                sides = [self._operand(side, known) for side in (node.expr, node.other)]
                return _compared(sides, wanted == (node.op == "="))
            case "RelationalExpression" if node.op in ("IN", "NOT IN"):
                left = self._operand(node.expr, known)
                compared = [_compared([left, self._operand(o, known)], wanted == (node.op == "IN"))
                            for o in node.other]  # fmt: skip
                if wanted == (node.op == "IN"):
                    return _limited(itertools.chain(*compared))
                matches = [Conjunct()]
                for way in compared:
                    matches = _joined(matches, way)
                return matches
            case "RelationalExpression" if node.op:
                raise refusal(f"the comparison {node.op}")
            case name if name in _WRAPPERS and not node.other:
                return self._ways(node.expr, wanted, known)
            case "UnaryNot":
                return self._ways(node.expr, not wanted, known)
            case "Builtin_sameTerm":
                return _compared([self._operand(a, known) for a in (node.arg1, node.arg2)], wanted)
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


def _compared(sides: list[Term | None], equal: bool) -> Matches:
    left, right = sides
    if left is None or right is None:
        return []
    return [Conjunct((SignedAtom(Equal(left, right), not equal),))]


def _without(match: Conjunct, removed: list[Conjunct]) -> Conjunct:
    return replace(match, groups=(*match.groups, *removed))


def _join(one: Conjunct, other: Conjunct) -> Conjunct:
    return Conjunct(
        tuple(dict.fromkeys(one.literals + other.literals)),
        tuple(dict.fromkeys(one.groups + other.groups)),
        tuple(dict.fromkeys(one.bound + other.bound)),
    )


def _joined(left: Matches, right: Matches) -> Matches:
    return _limited(_join(one, other) for one in left for other in right)


def _limited(matches: Iterable[Conjunct]) -> Matches:
    """All matches; QueryError if there are more than a formula may have disjuncts."""
    few = list(itertools.islice(matches, MAX_DISJUNCTS + 1))
    if len(few) > MAX_DISJUNCTS:
        raise QueryError(f"the query expands to more than {MAX_DISJUNCTS} disjuncts")
    return few


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
