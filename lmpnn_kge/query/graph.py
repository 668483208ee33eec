"""Query graphs: what a conjunct looks like to message passing.

Terms are nodes, literals are signed directed edges. A denied group has no sign of its own in such a
graph: its edges next to what lies outside it carry the negation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lmpnn_kge.query.formula import FREE, Atom, Constant, Formula, Term
from lmpnn_kge.query.normal_form import Conjunct, normalise, signed_literals


@dataclass(frozen=True)
class Edge:
    """relation(head, tail), or its negation, between numbered nodes; no relation is equality."""

    relation: str | None
    head: int
    tail: int
    negated: bool = False


@dataclass(frozen=True)
class QueryGraph:
    """A conjunctive query as nodes and edges; node 0 is the free variable."""

    nodes: tuple[Term, ...]
    edges: tuple[Edge, ...]

    @property
    def distances(self) -> list[int]:
        """How many edges lie between each node and the free variable."""
        distances = {0: 0}
        frontier = [0]
        while frontier:
            frontier = [
                n for node in frontier for n in self._neighbours(node) if n not in distances
            ]
            distance = 1 + max(distances.values())
            distances.update(dict.fromkeys(frontier, distance))
        return [distances[node] for node in range(len(self.nodes))]

    @property
    def depth(self) -> int:
        """L: from the farthest constant to the free variable, or from the farthest node.

        A constant that a formula names twice is as far as the farther of the two: in
        borders(Peru, ?x) & borders(?x, ?) & ? != Peru, what ?x hears of Peru must reach ? as well.
        """
        distances = self.distances
        ends = [
            pair for edge in self.edges for pair in ((edge.head, edge.tail), (edge.tail, edge.head))
        ]
        constants = [
            1 + distances[to] for node, to in ends if isinstance(self.nodes[node], Constant)
        ]
        return max(constants or distances)

    def plan(self, depth: int | None = None) -> tuple[tuple[int, ...], ...]:
        """For each layer 0 … L, the nodes whose state there reaches the answer."""
        depth = self.depth if depth is None else depth
        distances = self.distances
        return tuple(
            tuple(node for node, distance in enumerate(distances) if distance <= depth - layer)
            for layer in range(depth + 1)
        )

    def _neighbours(self, node: int) -> Iterator[int]:
        for edge in self.edges:
            if node in (edge.head, edge.tail):
                yield edge.tail if node == edge.head else edge.head


def query_graphs(formula: Formula, *, merge: bool = False) -> tuple[QueryGraph, ...]:
    """The graphs of a formula's disjuncts, or the one of all of them merged."""
    return tuple(map(_graph, normalise(formula, merge=merge)))


def _graph(conjunct: Conjunct) -> QueryGraph:
    numbers: dict[Term, int] = {FREE: 0}
    edges = []
    for literal in signed_literals(conjunct):
        head, tail = (numbers.setdefault(term, len(numbers)) for term in literal.terms)
        relation = literal.atom.relation if isinstance(literal.atom, Atom) else None
        edges.append(Edge(relation, head, tail, literal.negated))
    return QueryGraph(tuple(numbers), tuple(edges))
