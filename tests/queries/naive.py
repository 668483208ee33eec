"""A random graph, and the types over it by plain dictionaries: a second opinion on sampled queries.

A set of answers is a dictionary from each entity to the least number of missing edges it needs.
"""

from collections import defaultdict
from pathlib import Path

import numpy as np

from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.graph.vocabulary import Vocabulary

#: So many relations that none must be in a fifth of all queries.
ENTITIES, RELATIONS = 40, 40


def random_graph() -> KnowledgeGraph:
    """Each relation links most of a few heads with most of some tails; half of that is held out."""
    random = np.random.default_rng(5)
    triples = [
        (head, relation, tail)
        for relation in range(RELATIONS)
        for head in random.choice(ENTITIES, 5, replace=False)
        for tail in random.choice(ENTITIES // 4, 7, replace=False) + relation % 4 * 10
    ]
    rows = random.permutation(np.array(triples, np.int64))
    parts = np.split(rows, [len(rows) // 2, 3 * len(rows) // 4])
    names = Vocabulary([f"e{i}" for i in range(ENTITIES)], [f"r{i}" for i in range(RELATIONS)])
    return KnowledgeGraph(Path(), "random", names, dict(zip(SPLITS, parts, strict=True)))


class Naive:
    """The answers of queries by the edges of a split, of which its own edges are missing."""

    def __init__(self, graph, split):
        self.tails = defaultdict(dict)  # (head, relation) -> tail -> cost
        level = SPLITS.index(split)
        for s, p, o, own in np.column_stack(graph.edges).tolist():
            if own <= level:
                cost = int(own == level)
                self.tails[s, p][o] = cost
                self.tails[o, p + graph.num_relations][s] = cost

    def answers(self, name, constants, relations):
        """The answers of one query, with their costs."""
        return TYPES[name](self.step, [{c: 0} for c in constants], relations)

    def step(self, heads, relation):
        costs = {}
        for head, cost in heads.items():
            for tail, missing in self.tails.get((head, relation), {}).items():
                costs[tail] = min(cost + missing, costs.get(tail, 99))
        return costs


def both(*sides):
    """What all sides have; each needs its own missing edges."""
    common = set.intersection(*map(set, sides))
    return {entity: sum(side[entity] for side in sides) for entity in common}


def either(a, b):
    """What one side has; the cheaper one counts."""
    return {entity: min(a.get(entity, 99), b.get(entity, 99)) for entity in {*a, *b}}


def without(a, b):
    """What the second side does not have, for whatever reason."""
    return {entity: cost for entity, cost in a.items() if entity not in b}


TYPES = {
    "1p": lambda to, s, r: to(s[0], r[0]),
    "2p": lambda to, s, r: to(to(s[0], r[0]), r[1]),
    "3p": lambda to, s, r: to(to(to(s[0], r[0]), r[1]), r[2]),
    "4p": lambda to, s, r: to(to(to(to(s[0], r[0]), r[1]), r[2]), r[3]),
    "2i": lambda to, s, r: both(*map(to, s, r)),
    "3i": lambda to, s, r: both(*map(to, s, r)),
    "4i": lambda to, s, r: both(*map(to, s, r)),
    "pi": lambda to, s, r: both(to(to(s[0], r[0]), r[1]), to(s[1], r[2])),
    "ip": lambda to, s, r: to(both(to(s[0], r[0]), to(s[1], r[1])), r[2]),
    "2u": lambda to, s, r: either(to(s[0], r[0]), to(s[1], r[1])),
    "up": lambda to, s, r: to(either(to(s[0], r[0]), to(s[1], r[1])), r[2]),
    "2in": lambda to, s, r: without(to(s[0], r[0]), to(s[1], r[1])),
    "3in": lambda to, s, r: without(both(to(s[0], r[0]), to(s[1], r[1])), to(s[2], r[2])),
    "inp": lambda to, s, r: to(without(to(s[0], r[0]), to(s[1], r[1])), r[2]),
    "pin": lambda to, s, r: without(to(to(s[0], r[0]), r[1]), to(s[1], r[2])),
    "pni": lambda to, s, r: without(to(s[1], r[2]), to(to(s[0], r[0]), r[1])),
}

#: The types with negation without it: the type, and its constants and relations there.
RELAXED = {
    "2in": ("1p", [0], [0]),
    "3in": ("2i", [0, 1], [0, 1]),
    "inp": ("2p", [0], [0, 2]),
    "pin": ("2p", [0], [0, 1]),
    "pni": ("1p", [1], [2]),
}

#: Pairs of steps of which the second follows the first, by type.
STEPS = {
    "2p": [(0, 1)],
    "3p": [(0, 1), (1, 2)],
    "pi": [(0, 1)],
    "ip": [(0, 2), (1, 2)],
    "up": [(0, 2), (1, 2)],
    "inp": [(0, 2), (1, 2)],
    "pin": [(0, 1)],
    "pni": [(0, 1)],
}

#: Pairs of branches of one step, by type: the constant and the relation of each.
BRANCHES = {
    "2i": [((0, 0), (1, 1))],
    "3i": [((0, 0), (1, 1)), ((0, 0), (2, 2)), ((1, 1), (2, 2))],
    "ip": [((0, 0), (1, 1))],
    "2u": [((0, 0), (1, 1))],
    "up": [((0, 0), (1, 1))],
    "2in": [((0, 0), (1, 1))],
    "3in": [((0, 0), (1, 1)), ((0, 0), (2, 2)), ((1, 1), (2, 2))],
    "inp": [((0, 0), (1, 1))],
}


def rows(queries):
    """Each query as its constants, its relations, its easy and its hard answers with costs."""
    for row in range(len(queries)):
        sides = []
        for side in (queries.easy, queries.hard):
            part = slice(side.offsets[row], side.offsets[row + 1])
            costs = [0] * len(side.of(row)) if side.costs is None else side.costs[part].tolist()
            sides.append(dict(zip(side.of(row).tolist(), costs, strict=True)))
        yield queries.constants[row].tolist(), queries.relations[row].tolist(), *sides
