"""What message passing does for a pattern, worked out once: which state goes where, layer by layer.

Only nodes whose state still reaches the answer have a place in a layer, so that the network does no
work for the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from lmpnn_kge.query.formula import FREE, Constant
from lmpnn_kge.query.graph import QueryGraph, query_graphs
from lmpnn_kge.query.patterns import Pattern

#: How a disjunction is answered: each part alone and the best taken, or all read as a conjunction.
Union = Literal["dnf", "merge"]

#: Whether a constant is updated like any node, as in the paper, or keeps its embedding.
Constants = Literal["updated", "kept"]


@dataclass(frozen=True)
class Message:
    """ρ from one node to another over a literal, both given by their places."""

    source: int  # in the layer before
    target: int  # in this layer
    relation: int | None  # the column of the queries' relations; None for an equality
    inverse: bool  # whether it goes from tail to head
    negated: bool


@dataclass(frozen=True)
class Layer:
    """One step: every node of the layer takes its own state and the messages to it."""

    states: tuple[int, ...]  # for each node, its place in the layer before
    messages: tuple[Message, ...]
    kept: tuple[int, ...] = ()  # places in the layer before of constants that go on as they are
    alone: tuple[Message, ...] = ()  # those that make a node depend on one relation alone


@dataclass(frozen=True)
class Wiring:
    """A query graph, ready for a batch of queries; what is first after the last layer answers."""

    inputs: tuple[int | Literal["free", "bound"], ...]  # a column of constants, or a variable
    layers: tuple[Layer, ...]

    @property
    def rows(self) -> int:
        """How often the MLP is applied for one query."""
        return sum(len(layer.states) for layer in self.layers)


@lru_cache(maxsize=1024)
def wire(
    pattern: Pattern,
    union: Union = "dnf",
    depth_shift: int = 0,
    constants: Constants = "updated",
) -> tuple[Wiring, ...]:
    """The wiring of each disjunct; depth_shift adds layers to the L that the query needs."""
    graphs = query_graphs(pattern.formula, merge=union == "merge")
    return tuple(wire_graph(graph, pattern, depth_shift, constants) for graph in graphs)


def wire_graph(
    graph: QueryGraph, pattern: Pattern, depth_shift: int = 0, constants: Constants = "updated"
) -> Wiring:
    """The wiring of one query graph; at least one layer, lest nothing be said at all."""
    before, *plan = graph.plan(max(1, graph.depth + depth_shift))
    inputs: list[int | Literal["free", "bound"]] = []
    for node in before:
        term = graph.nodes[node]
        if isinstance(term, Constant):
            inputs.append(pattern.constants.index(term.name))
        else:
            inputs.append("free" if term == FREE else "bound")
    fixed = {
        node
        for node, term in enumerate(graph.nodes)
        if constants == "kept" and isinstance(term, Constant)
    }
    layers = []
    for needed in plan:
        nodes = tuple(node for node in needed if node not in fixed)
        kept = tuple(node for node in before if node in fixed)
        layers.append(
            Layer(
                tuple(before.index(node) for node in nodes),
                tuple(_messages(graph, pattern, before, nodes)),
                tuple(before.index(node) for node in kept),
            )
        )
        before = nodes + kept
    layers[0] = replace(layers[0], alone=tuple(_alone(layers[0], inputs)))
    return Wiring(tuple(inputs), tuple(layers))


def _alone(first: Layer, inputs: list[int | Literal["free", "bound"]]) -> Iterator[Message]:
    """Where a variable hears of nothing but another variable, over one relation."""
    for message in first.messages:
        others = [other for other in first.messages if other.target == message.target]
        ends = inputs[message.source], inputs[first.states[message.target]]
        variables = not any(isinstance(end, int) for end in ends)
        if variables and others == [message] and message.relation is not None:
            yield message


def _messages(
    graph: QueryGraph, pattern: Pattern, before: tuple[int, ...], nodes: tuple[int, ...]
) -> Iterator[Message]:
    for edge in graph.edges:
        relation = None if edge.relation is None else pattern.relations.index(edge.relation)
        for source, target, inverse in (
            (edge.head, edge.tail, False),
            (edge.tail, edge.head, True),
        ):
            if target in nodes:
                places = before.index(source), nodes.index(target)
                yield Message(*places, relation, inverse, edge.negated)
