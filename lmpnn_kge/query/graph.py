"""Query graphs: conjuncts as message passing sees them.

Terms are nodes, literals are signed directed edges. Only edges have signs in such a graph, so the
negation of a group is carried by those of its edges that leave the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lmpnn_kge.query.formula import Atom, Constant, Formula, Term, Variable
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, normalise, scoped


@dataclass(frozen=True)
class Edge:
    """relation(head, tail) or its negation, between numbered nodes."""

    relation: str | None  # None for an equality
    head: int
    tail: int
    negated: bool = False


@dataclass(frozen=True)
class QueryGraph:
    """A conjunctive query as nodes and edges; the first nodes are its free variables.

    Node 0 is the free variable that is answered.
    """

    nodes: tuple[Term, ...]
    edges: tuple[Edge, ...]
    free: int = 1  # the number of free variables

    @property
    def distances(self) -> list[int]:
        """For each node, the number of edges between it and node 0."""
        return self._distances(0)

    def _distances(self, start: int) -> list[int]:
        """For each node, the number of edges between it and a node."""
        neighbours: list[list[int]] = [[] for _ in self.nodes]
        for edge in self.edges:
            neighbours[edge.head].append(edge.tail)
            neighbours[edge.tail].append(edge.head)
        distances, distance = {start: 0}, 0
        frontier = [start]
        while frontier:  # breadth first: nodes that are one edge farther than those before
            reached = (other for node in frontier for other in neighbours[node])
            frontier = list(dict.fromkeys(node for node in reached if node not in distances))
            distance += 1
            distances.update(dict.fromkeys(frontier, distance))
        return [distances[node] for node in range(len(self.nodes))]

    @property
    def depth(self) -> int:
        """L: the distance of the farthest constant, or of the farthest node if there is none.

        A constant that a formula names twice counts with its longest way to `?`: in
        borders(Peru, ?x) & borders(?x, ?) & ? != Peru, the message from Peru to ?x must reach ?.
        Of several free variables, the one that is farthest from a constant counts.
        """
        return max(map(self._depth, range(self.free)))

    def _depth(self, variable: int) -> int:
        distances = self._distances(variable)
        ends = [
            pair for edge in self.edges for pair in ((edge.head, edge.tail), (edge.tail, edge.head))
        ]
        constants = [
            1 + distances[to] for node, to in ends if isinstance(self.nodes[node], Constant)
        ]
        return max(constants or distances)

    def plan(self, depth: int | None = None) -> tuple[tuple[int, ...], ...]:
        """For each layer 0 … L, the nodes whose state in that layer affects the answer."""
        depth = self.depth if depth is None else depth
        distances = self.distances
        return tuple(
            tuple(node for node, distance in enumerate(distances) if distance <= depth - layer)
            for layer in range(depth + 1)
        )

    def neighbours(self, node: int) -> Iterator[int]:
        """The nodes that share an edge with a node."""
        for edge in self.edges:
            if node in (edge.head, edge.tail):
                yield edge.tail if node == edge.head else edge.head


def query_graphs(
    formula: Formula, *, merge: bool = False, focus: Variable | None = None
) -> tuple[QueryGraph, ...]:
    """The graphs of a formula's disjuncts, or the single graph of all of them merged.

    focus is the free variable that is answered, by default the first.
    """
    return tuple(query_graph(conjunct, focus) for conjunct in normalise(formula, merge=merge))


def query_graph(conjunct: Conjunct, focus: Variable | None = None) -> QueryGraph:
    """The graph of a conjunct: its own literals are the first edges, then those of its groups."""
    free = conjunct.free if focus is None else dict.fromkeys((focus, *conjunct.free))
    numbers: dict[Term, int] = {variable: number for number, variable in enumerate(free)}
    edges = []
    for literal in signed_literals(conjunct):
        head, tail = (numbers.setdefault(term, len(numbers)) for term in literal.terms)
        relation = literal.atom.relation if isinstance(literal.atom, Atom) else None
        edges.append(Edge(relation, head, tail, literal.negated))
    return QueryGraph(tuple(numbers), tuple(edges), len(free))


def signed_literals(conjunct: Conjunct) -> Iterator[SignedAtom]:
    """All literals of a conjunct and of its groups, as the edges of a query graph.

    An edge has a sign, but a group of edges has none. Therefore the literals of a denied group that
    have a variable from outside it carry the negation.
    """
    return _signed(scoped(conjunct))


def _signed(conjunct: Conjunct) -> Iterator[SignedAtom]:
    yield from conjunct.literals
    for group in conjunct.groups:
        inside = set(_all_bound(group))
        for literal in _signed(group):
            leaving = any(isinstance(t, Variable) and t not in inside for t in literal.terms)
            yield replace(literal, negated=literal.negated != leaving)


def _all_bound(conjunct: Conjunct) -> Iterator[Variable]:
    """The variables that a conjunct or one of its groups binds."""
    yield from conjunct.bound
    for group in conjunct.groups:
        yield from _all_bound(group)
