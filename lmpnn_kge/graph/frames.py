"""Triples and exact answers as DataFrames (extra `frames`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.graph.vocabulary import Labels, Vocabulary
from lmpnn_kge.notebook import data_frame


def triples_frame(names: Vocabulary, splits: Mapping[str, Triples]) -> Any:
    """The columns head, relation, tail and split; with labels, if there are any."""
    triples = np.concatenate([np.empty((0, 3), np.int64), *splits.values()])
    heads, relations, tails = triples.T
    columns: dict[str, tuple[list[str] | Labels, Any]] = {
        "head": (names.entity_ids, heads),
        "relation": (names.relation_ids, relations),
        "tail": (names.entity_ids, tails),
    }
    for role, labels, rows in (
        ("head", names.entity_labels, heads),
        ("relation", names.relation_labels, relations),
        ("tail", names.entity_labels, tails),
    ):
        if labels is not None:
            columns[f"{role}_label"] = labels, rows
    frame = {name: np.array(values, object)[rows] for name, (values, rows) in columns.items()}
    sizes = [len(part) for part in splits.values()]
    return data_frame(frame | {"split": np.repeat(np.array([*splits], object), sizes)})


def tuples_frame(names: Vocabulary, tuples: Triples) -> Any:
    """The columns id and label of entities [m, 1], or id1, label1, id2, … of tuples [m, k].

    The label is the id if there is none.
    """
    columns: dict[str, list[str]] = {}
    for place, rows in enumerate(tuples.T.tolist(), 1):
        number = "" if tuples.shape[1] == 1 else place
        columns[f"id{number}"] = [names.entity_ids[row] for row in rows]
        columns[f"label{number}"] = [names.label(row) for row in rows]
    return data_frame(columns)
