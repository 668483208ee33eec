"""Made-up queries and answers, for tests that only pass them on."""

from collections.abc import Sequence

import numpy as np

from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import Pattern, named_patterns


def answers(sets: Sequence[Sequence[int]], costs: Sequence[int] | None = None) -> Answers:
    """The columns of one set of answers for each query."""
    return Answers(
        np.cumsum([0, *map(len, sets)]).astype(np.int64),
        np.array([entity for found in sets for entity in sorted(found)], np.int32),
        None if costs is None else np.array(costs, np.int32),
    )


def patterns(*tuples: str) -> dict[str, Pattern]:
    """The types with one free variable, and some others about each of their variables."""
    every = named_patterns()
    single = {name: pattern for name, pattern in every.items() if len(pattern.free) == 1}
    return single | {
        f"{name} {variable}": every[name].about(variable)
        for name in tuples
        for variable in every[name].free
    }


def queries(pattern: Pattern, count: int, entities: int, relations: int, seed: int = 0) -> Queries:
    """Random queries with a few easy answers each and no hard ones; inverse relations occur too."""
    random = np.random.default_rng(seed)
    found = [
        random.choice(entities, random.integers(1, 5), replace=False).tolist() for _ in range(count)
    ]
    return Queries(
        pattern,
        random.integers(entities, size=(count, len(pattern.constants)), dtype=np.int32),
        random.integers(2 * relations, size=(count, len(pattern.relations)), dtype=np.int32),
        answers(found),
        Answers.none(count),
    )
