"""Triples and exact answers as DataFrames (extra `frames`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def entities_frame(names: Vocabulary, rows: Sequence[int]) -> Any:
    """The columns id and label of some entities; the label is the id if there is none."""
    return data_frame(
        {"id": [names.entity_ids[row] for row in rows], "label": [names.label(r) for r in rows]}
    )
