"""Joining a checkpoint's rows to a dataset's ids, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, examples
from lmpnn_kge.graph.knowledge_graph import Graph

#: Names that may differ while two lists of ids still count as the same list, as a share of all.
MAX_RENAMED = 0.1


@dataclass(frozen=True)
class Join:
    """The ids of a checkpoint's rows, and what a user should know about how they were found."""

    ids: list[str]
    note: str | None = None


def join_ids(kind: str, have: list[str] | None, rows: int, graph: Graph) -> Join:
    """Name the rows of a checkpoint as a dataset does; kind is `entity` or `relation`.

    A checkpoint without ids must have as many rows as the dataset has ids. One with ids must know
    every name of the dataset. The one exception: where both lists are equally long and agree row
    by row but for a few names that the other list does not have anywhere, those were renamed.
    """
    want = graph.entity_ids if kind == "entity" else graph.relation_ids
    if have is None:
        if len(want) != rows:
            raise DatasetError(
                f"{graph.folder} has {len(want)} {kind} ids, but the checkpoint has {rows} rows: "
                "it was trained on another dataset"
            )
        return Join(want)
    unknown = set(want).difference(have)
    extra = set(have).difference(want)
    if not unknown:
        only = f"{kind} ids of the checkpoint that {graph.folder} has not: {examples(extra)}"
        return Join(have, only if extra else None)
    pairs = list(zip(have, want, strict=False))
    renamed = [(old, new) for old, new in pairs if old != new]
    if (
        len(have) == len(want)
        and len(renamed) <= MAX_RENAMED * len(want)
        and all(old in extra and new in unknown for old, new in renamed)
    ):
        changes = examples([f"{old} → {new}" for old, new in renamed])
        return Join(
            want,
            f"{kind} ids that {graph.folder} spells differently, while all others agree row by "
            f"row: {changes}; its spelling is used",
        )
    raise DatasetError(
        f"{graph.folder} has {kind} ids that the checkpoint has not: {examples(unknown)}; "
        "was it trained on an older version of the graph?"
    )


def rows_of(ids: Sequence[str], table: Sequence[str]) -> npt.NDArray[np.int64]:
    """The row of each id in a table that has them all."""
    row = {id_: number for number, id_ in enumerate(table)}
    return np.array([row[id_] for id_ in ids], np.int64)
