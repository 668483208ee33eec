"""The 14 BetaE types with plain Python sets: a second opinion, and a yardstick for speed."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph

Step = Callable[[set[int], int], set[int]]


def adjacency(graph: KnowledgeGraph) -> dict[int, dict[int, set[int]]]:
    """relation -> head -> tails, over all edges; relation r + R is the inverse of r."""
    found: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for s, p, o in graph.edges[0].tolist():
        found[p][s].add(o)
        found[p + graph.num_relations][o].add(s)
    return {relation: dict(heads) for relation, heads in found.items()}


def answer(
    name: str, constants: np.ndarray, relations: np.ndarray, edges: dict[int, dict[int, set[int]]]
) -> list[set[int]]:
    """The answers of all queries of a type, one query at a time."""
    none: set[int] = set()

    def step(entities: set[int], relation: int) -> set[int]:
        tails = edges.get(relation, {})
        return set().union(*(tails.get(entity, none) for entity in entities))

    evaluate = TYPES[name]
    return [
        evaluate(step, [{c} for c in cs], rs)
        for cs, rs in zip(constants.tolist(), relations.tolist(), strict=True)
    ]


TYPES: dict[str, Callable[[Step, list[set[int]], list[int]], set[int]]] = {
    "1p": lambda to, s, r: to(s[0], r[0]),
    "2p": lambda to, s, r: to(to(s[0], r[0]), r[1]),
    "3p": lambda to, s, r: to(to(to(s[0], r[0]), r[1]), r[2]),
    "2i": lambda to, s, r: to(s[0], r[0]) & to(s[1], r[1]),
    "3i": lambda to, s, r: to(s[0], r[0]) & to(s[1], r[1]) & to(s[2], r[2]),
    "pi": lambda to, s, r: to(to(s[0], r[0]), r[1]) & to(s[1], r[2]),
    "ip": lambda to, s, r: to(to(s[0], r[0]) & to(s[1], r[1]), r[2]),
    "2u": lambda to, s, r: to(s[0], r[0]) | to(s[1], r[1]),
    "up": lambda to, s, r: to(to(s[0], r[0]) | to(s[1], r[1]), r[2]),
    "2in": lambda to, s, r: to(s[0], r[0]) - to(s[1], r[1]),
    "3in": lambda to, s, r: (to(s[0], r[0]) & to(s[1], r[1])) - to(s[2], r[2]),
    "inp": lambda to, s, r: to(to(s[0], r[0]) - to(s[1], r[1]), r[2]),
    "pin": lambda to, s, r: to(to(s[0], r[0]), r[1]) - to(s[1], r[2]),
    "pni": lambda to, s, r: to(s[1], r[2]) - to(to(s[0], r[0]), r[1]),
}
