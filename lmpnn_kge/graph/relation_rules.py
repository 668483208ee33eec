"""Relations that repeat each other: pairs by which a test triple can be copied from training.

The rule r(x, y) → s(x, y), or r(x, y) → s(y, x), holds for a share of the pairs of r that is
counted over all triples. A graph with many such rules is easier than it looks: whoever has learnt
them finds the test triples of s without knowing anything about s. FB15k and WN18 are such graphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from lmpnn_kge.graph.triples import Triples, both_directions

#: The share of a relation's pairs from which a rule is reported, and how many pairs it must have.
SHARE, PAIRS = 0.8, 5


@dataclass(frozen=True)
class RelationRule:
    """premise(x, y) → conclusion(x, y), or conclusion(y, x) if it is inverse."""

    premise: int
    conclusion: int
    inverse: bool
    shared: int  # pairs for which both relations hold
    pairs: int  # pairs of the premise
    in_test: int  # test triples that follow by the rule from a training triple

    @property
    def share(self) -> float:
        return self.shared / self.pairs


@dataclass(frozen=True)
class Leaks:
    """The rules of a graph, and how many test triples follow from training by one of them."""

    rules: tuple[RelationRule, ...]
    test_triples: int


def find_leaks(triples: Triples, level: npt.NDArray[np.int64], relations: int) -> Leaks:
    """All rules that hold for at least SHARE of a relation's pairs, and for at least PAIRS pairs.

    triples [n, 3] has every triple once, and level [n] the number of its split: 0 is train, 2 test.
    Nothing is sampled: the counts are exact. The rules of most test triples come first.
    """
    with duckdb.connect() as connection:
        connection.execute("SET temp_directory = ''")
        connection.execute("SET enable_progress_bar = false")  # it is drawn on stdout
        _create(connection, "forward", triples, level)
        _create(connection, "either", both_directions(triples, relations), np.tile(level, 2))
        connection.execute(_SHARED, {"relations": relations, "share": SHARE, "pairs": PAIRS})
        connection.execute(_FOLLOWING)
        rules = connection.execute(_RULES).fetchnumpy()
        (leaked,) = connection.execute(_LEAKED, {"relations": relations}).fetchone() or (0,)
    columns = (rules[name].tolist() for name in ("p", "s", "shared", "pairs", "in_test"))
    return Leaks(
        tuple(
            RelationRule(premise, s % relations, s >= relations, shared, pairs, in_test)
            for premise, s, shared, pairs, in_test in zip(*columns, strict=True)
        ),
        int(leaked),
    )


#: Pairs (h, t) for which p and s hold; s + R stands for s(t, h). A relation is its own inverse if
#: it is symmetric, but it is not its own duplicate.
_SHARED = """
CREATE TABLE rules AS
WITH sizes AS (SELECT p, count(*) AS pairs FROM forward GROUP BY p),
shared AS (
    SELECT a.p, b.p AS s, count(*) AS shared
    FROM forward a JOIN either b ON a.h = b.h AND a.t = b.t AND a.p <> b.p
    WHERE a.h <> a.t OR b.p <> a.p + $relations
    GROUP BY ALL
)
SELECT * FROM shared JOIN sizes USING (p)
WHERE shared >= $share * pairs AND shared >= $pairs
"""

#: The test triples that follow by a rule from a training triple; s + R means that it is inverse.
_FOLLOWING = """
CREATE TABLE following AS
SELECT rules.p, rules.s, b.h, b.t
FROM rules
JOIN forward a ON a.p = rules.p AND a.level = 0
JOIN either b ON b.p = rules.s AND b.h = a.h AND b.t = a.t AND b.level = 2
"""

_RULES = """
SELECT p, s, shared, pairs, coalesce(in_test, 0) AS in_test
FROM rules LEFT JOIN (SELECT p, s, count(*) AS in_test FROM following GROUP BY p, s) USING (p, s)
ORDER BY in_test DESC, shared / pairs DESC, shared DESC, p, s
"""

_LEAKED = """
SELECT count(*) FROM (
    SELECT DISTINCT s % $relations, if(s < $relations, h, t), if(s < $relations, t, h)
    FROM following
)
"""


def _create(connection: Any, table: str, triples: Triples, level: npt.NDArray[np.int64]) -> None:
    heads, relations, tails = (np.ascontiguousarray(column, np.int32) for column in triples.T)
    connection.register(
        "incoming", {"h": heads, "p": relations, "t": tails, "level": level.astype(np.int8)}
    )
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")
    connection.unregister("incoming")
