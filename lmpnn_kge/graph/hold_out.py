"""Which triples are held out for valid and test: a share of each relation, none by chance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError
from lmpnn_kge.graph.formats.table_columns import connection
from lmpnn_kge.graph.numbered import Numbered
from lmpnn_kge.graph.triples import SPLITS, Triples

Int64s = npt.NDArray[np.int64]

#: The share of triples held out for valid, and again for test.
SHARE = 0.1

#: Facts that are looked at together: their entities are checked at once, and then one by one.
CHUNK = 1 << 16

#: The first 64 bits of the SHA-256 of a seed and the three names of each triple.
LOTS = """
    SELECT i, ('0x' || substr(sha256(concat_ws(chr(9), $seed, a.name, b.name, c.name)), 1, 16))
        ::UBIGINT AS lot
    FROM triples
    JOIN entities a ON s = a.id JOIN relations b ON p = b.id JOIN entities c ON o = c.id
"""


def check_shares(valid: float, test: float) -> None:
    """DatasetError if shares leave no triples to train on."""
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise DatasetError(
            f"shares of {valid} for valid and {test} for test leave nothing to train on; their sum "
            "must be below 1"
        )


def hold_out(
    graph: Numbered, seed: str, valid: float = SHARE, test: float = SHARE
) -> dict[str, Triples]:
    """Hold out shares of each relation for valid and test, while train keeps every entity.

    The graph is sorted. r(a, b) and r(b, a) stay in one split, because one would give the other
    away. Their split depends only on them, the seed and the shares.
    """
    check_shares(valid, test)
    heads, relations, tails = graph.triples.T
    # r(a, b) and r(b, a) are one fact, under a key that has no direction.
    low, high = np.minimum(heads, tails), np.maximum(heads, tails)
    keys = (low * len(graph.relations) + relations) * len(graph.entities) + high
    _, first, fact_of = np.unique(keys, return_index=True, return_inverse=True)
    lots = _lots(graph, seed)
    fact_lots = lots[first]
    forward = heads <= tails  # in this order a fact of two triples is named
    fact_lots[fact_of[forward]] = lots[forward]
    order = first[np.argsort(fact_lots, kind="stable")]
    level = np.zeros(len(first), np.int8)
    facts = low[order], relations[order], high[order]
    level[fact_of[order]] = _levels(*facts, len(graph.relations), (valid, test))
    levels = level[fact_of]
    return {split: graph.triples[levels == number] for number, split in enumerate(SPLITS)}


def _levels(
    low: Int64s, relations: Int64s, high: Int64s, count: int, shares: tuple[float, float]
) -> npt.NDArray[np.int8]:
    """The number of the split of each fact; facts come in the order in which they are drawn."""
    entities = int(high.max(initial=-1)) + 1
    in_train = np.bincount(low, minlength=entities)
    in_train += np.bincount(high[high != low], minlength=entities)
    sizes = np.bincount(relations, minlength=count)
    wanted = [(share * sizes).astype(np.int64) for share in shares]
    levels = np.zeros(len(low), np.int8)
    # A view of memory is read and written several times faster than a numpy array, one by one.
    left, valid, test, out = in_train.data, wanted[0].data, wanted[1].data, levels.data
    for start in range(0, len(low), CHUNK):
        part = slice(start, start + CHUNK)
        a, r, b = low[part], relations[part], high[part]
        # Neither number ever grows: what cannot be held out now never can.
        can = (in_train[a] > 1) & (in_train[b] > 1) & (wanted[0][r] + wanted[1][r] > 0)
        places = np.flatnonzero(can) + start
        rows = zip(*(column[can].tolist() for column in (a, r, b)), strict=True)
        for place, (one, relation, other) in zip(places.tolist(), rows, strict=True):
            if left[one] < 2 or left[other] < 2:
                continue
            if valid[relation] > test[relation]:
                valid[relation] -= 1
                out[place] = 1
            elif test[relation]:
                test[relation] -= 1
                out[place] = 2
            else:
                continue
            left[one] -= 1
            if other != one:
                left[other] -= 1
    return levels


def _lots(graph: Numbered, seed: str) -> npt.NDArray[np.uint64]:
    """A number for each triple, drawn by its names and a seed."""
    s, p, o = graph.triples.T
    lots = np.zeros(len(graph), np.uint64)
    with connection() as database:
        for table, names in (("entities", graph.entities), ("relations", graph.relations)):
            column = np.array(names, object)
            database.register(
                "names", {"name": column, "id": np.arange(len(names), dtype=np.int32)}
            )
            database.execute(
                f"CREATE TEMP TABLE {table} AS SELECT name::VARCHAR AS name, id FROM names"
            )
        columns = {"s": s, "p": p, "o": o, "i": np.arange(len(graph))}
        rows = {name: np.ascontiguousarray(column, np.int32) for name, column in columns.items()}
        database.register("triples", rows)
        drawn = database.execute(LOTS, {"seed": seed}).fetchnumpy()
    lots[drawn["i"]] = drawn["lot"]
    return lots
