"""Small query stores: one by hand, others at random, and their content as plain values."""

import numpy as np
from hypothesis import strategies as st

from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.patterns import BETAE, EFO1, parse_pattern

ENTITIES = ["a", "b", "c", "d"]
RELATIONS = ["likes", "has part"]


def answers(*rows, costs=False):
    values = np.array([value for row in rows for value in row], np.int32)
    offsets = np.cumsum([0, *map(len, rows)])
    return Answers(offsets, values, values % 3 if costs else None)


def queries(text, constants, relations, easy, hard):
    pattern = parse_pattern(text)
    return Queries(
        pattern,
        np.array(constants, np.int32).reshape(len(easy), len(pattern.constants)),
        np.array(relations, np.int32).reshape(len(easy), len(pattern.relations)),
        answers(*easy),
        answers(*hard, costs=True),
    )


def small():
    train = {"1p": queries(BETAE["1p"], [[0], [1]], [[0], [3]], [[1, 2], [0]], [[], []])}
    test = {
        "mine/../2": queries("r1(f,e1)&f!=e1", [[]], [[1]], [[]], [[3]]),
        "2p": queries(BETAE["2p"], [[3]], [[0, 2]], [[]], [[0, 1]]),
    }
    return QueryStore(
        "tiny", Vocabulary(ENTITIES, RELATIONS), {"test": test, "train": train}, {"seed": 1}
    )


def content(store):
    """Everything that a store holds, as plain values."""
    columns = {
        (split, name): (
            str(found.pattern),
            found.constants.tolist(),
            found.relations.tolist(),
            *(
                None if column is None else column.tolist()
                for side in (found.easy, found.hard)
                for column in (side.offsets, side.values, side.costs)
            ),
        )
        for split, patterns in store.splits.items()
        for name, found in patterns.items()
    }
    return (
        store.graph,
        store.vocabulary.entity_ids,
        store.vocabulary.relation_ids,
        dict(store.provenance),
        columns,
    )


@st.composite
def stores(draw):
    splits = {}
    for split in draw(st.sets(st.sampled_from(["train", "valid", "test"]))):
        splits[split] = {}
        for name, text in draw(st.sets(st.sampled_from(sorted({**BETAE, **EFO1}.items())))):
            pattern, count = parse_pattern(text), draw(st.integers(0, 3))
            rows = st.lists(st.sets(st.integers(0, 3)).map(sorted), min_size=count, max_size=count)
            constants = draw(_table(count, len(pattern.constants), 3))
            relations = draw(_table(count, len(pattern.relations), 3))
            splits[split][name] = queries(text, constants, relations, draw(rows), draw(rows))
    return QueryStore(
        draw(st.text()), Vocabulary(ENTITIES, RELATIONS), splits, {"seed": draw(st.integers())}
    )


def _table(rows, columns, most):
    row = st.lists(st.integers(0, most), min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)
