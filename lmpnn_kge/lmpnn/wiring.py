"""Message passing for a pattern, planned once: which state goes where, layer by layer.

A layer has only those nodes whose state still affects the answer, so that the network does no work
for the others. Nodes are given by their index in a layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from lmpnn_kge.query.formula import Constant, Term
from lmpnn_kge.query.graph import QueryGraph, query_graphs
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.settings.kinds import ConstantsMode, UnionMode
from lmpnn_kge.work.deadline import check_time

#: A node before the first layer: a column of the queries' constants, or a kind of variable.
InputNode = int | Literal["free", "bound"]


@dataclass(frozen=True)
class Message:
    """ρ from one node to another over a literal."""

    source: int  # in the layer before
    target: int  # in this layer
    relation: int | None  # a column of the queries' relations; None for an equality
    inverse: bool  # whether it goes from tail to head
    negated: bool


@dataclass(frozen=True)
class Layer:
    """One step: every node combines its own state with the messages to it.

    The nodes of a layer are those that are updated, followed by those that are kept.
    """

    states: tuple[int, ...]  # the updated nodes, by their index in the layer before
    messages: tuple[Message, ...]
    kept: tuple[int, ...] = ()  # constants that keep their state, by index in the layer before
    hoistable: tuple[Message, ...] = ()  # those that make a node depend on one relation alone


@dataclass(frozen=True)
class Wiring:
    """The plan for a query graph; the only node of the last layer is the variable answered."""

    inputs: tuple[InputNode, ...]
    layers: tuple[Layer, ...]


@lru_cache(maxsize=1024)
def wire(
    pattern: Pattern,
    union: UnionMode = "dnf",
    depth_shift: int = 0,
    constants: ConstantsMode = "updated",
) -> tuple[Wiring, ...]:
    """The wiring of each disjunct; depth_shift adds layers to the L that its graph needs."""
    graphs = query_graphs(pattern.formula, merge=union == "merge", focus=pattern.focus)
    return tuple(wire_graph(graph, pattern, depth_shift, constants) for graph in graphs)


def wire_graph(
    graph: QueryGraph, pattern: Pattern, depth_shift: int = 0, constants: ConstantsMode = "updated"
) -> Wiring:
    """The wiring of one query graph.

    It always has at least one layer; with none, no message would reach the answer.
    """
    before, *plan = graph.plan(max(1, graph.depth + depth_shift))
    inputs = tuple(_input(graph.nodes[node], pattern) for node in before)
    fixed = {
        node
        for node, term in enumerate(graph.nodes)
        if constants == "kept" and isinstance(term, Constant)
    }
    layers = []
    for needed in plan:
        check_time()  # a long path has many layers of many messages
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
    layers[0] = replace(layers[0], hoistable=tuple(_hoistable(layers[0], inputs)))
    return Wiring(inputs, tuple(layers))


def _input(term: Term, pattern: Pattern) -> InputNode:
    if isinstance(term, Constant):
        return pattern.constants.index(term.name)
    return "free" if term.is_free else "bound"


def _hoistable(first: Layer, inputs: Sequence[InputNode]) -> Iterator[Message]:
    """The messages over a relation, between variables, that are the only ones to their target.

    Before the first layer a variable's state is the same in all queries. The sum of such a message
    and its target's own state therefore depends on the query's relation and on nothing else, and
    the network can work it out once per relation (`Lmpnn._hoist`).
    """
    for message in first.messages:
        others = [other for other in first.messages if other.target == message.target]
        ends = inputs[message.source], inputs[first.states[message.target]]
        variables = not any(isinstance(end, int) for end in ends)
        if variables and others == [message] and message.relation is not None:
            yield message


def _messages(
    graph: QueryGraph, pattern: Pattern, before: tuple[int, ...], nodes: tuple[int, ...]
) -> Iterator[Message]:
    """Every edge carries a message in each direction, if its target is among the nodes."""
    relations = {name: column for column, name in enumerate(pattern.relations)}
    sources = {node: position for position, node in enumerate(before)}
    targets = {node: position for position, node in enumerate(nodes)}
    for edge in graph.edges:
        relation = None if edge.relation is None else relations[edge.relation]
        for source, target, inverse in (
            (edge.head, edge.tail, False),
            (edge.tail, edge.head, True),
        ):
            if target in targets:
                yield Message(sources[source], targets[target], relation, inverse, edge.negated)
