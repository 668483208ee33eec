"""Completion of names in a question: those that fit the place, most known edges first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.completion import Cursor, cursor_at
from lmpnn_kge.query.formula import Constant
from lmpnn_kge.runs.knowledge import Knowledge
from lmpnn_kge.serve import requests, responses
from lmpnn_kge.serve.name_index import NameIndex

#: The number of known edges of each row.
Counts = npt.NDArray[np.int64]


class Completer:
    """The names of a run, and how often its graph knows them."""

    def __init__(self, names: Vocabulary, knowledge: Knowledge | None):
        self.names, self.knowledge = names, knowledge
        self.entities = NameIndex.of(names.entity_ids, names.entity_labels)
        self.relations = NameIndex.of(names.relation_ids, names.relation_labels)
        self.relation_counts = self.degrees = None
        if knowledge is not None:
            heads, relations, tails = knowledge.triples("train").T
            self.relation_counts = np.bincount(relations, minlength=names.num_relations)
            self.degrees = np.bincount(np.append(heads, tails), minlength=names.num_entities)

    def complete(self, wanted: requests.Complete) -> responses.Completions:
        """Names for a place in a text, or for a role."""
        if wanted.text is not None:
            place = len(wanted.text) if wanted.cursor is None else wanted.cursor
            cursor = cursor_at(wanted.text, place)
        elif wanted.role is not None:
            cursor = Cursor(wanted.role, 0, 0, wanted.prefix, wanted.relation, wanted.end)
        else:
            raise QueryError("give a text with a cursor, or a role: relation or entity")
        return {
            "start": cursor.start,
            "end": cursor.end,
            "role": cursor.role,
            "items": self._items(cursor, wanted.limit),
        }

    def _items(self, cursor: Cursor, limit: int) -> list[responses.Completion]:
        if cursor.role == "none":
            return []
        if cursor.role == "relation":
            rows = _best(self.relations, cursor.prefix, self.relation_counts, limit)
            return [self._relation(row) for row in rows]
        counts = self._seen(cursor)
        rows = [] if counts is None else _best(self.entities, cursor.prefix, counts, limit, least=1)
        if not rows:  # nothing that was seen here has such a name
            counts = self.degrees
            rows = _best(self.entities, cursor.prefix, counts, limit)
        return [self._entity(row, counts) for row in rows]

    def _seen(self, cursor: Cursor) -> Counts | None:
        """How often each entity was seen at an end of a relation; None if that is not asked."""
        if self.knowledge is None or cursor.relation is None or cursor.at is None:
            return None
        try:
            relation = self.names.relation(cursor.relation)
        except QueryError:  # it is not finished, or not a relation
            return None
        if cursor.at == "head":  # the head is the tail of the inverse
            relation += self.names.num_relations
        facts = self.knowledge.facts
        row = torch.tensor([relation], device=facts.keys.device)
        return facts.tail_counts(row)[0].cpu().long().numpy()

    def _entity(self, row: int, counts: Counts | None) -> responses.Completion:
        names, types = self.names, self.names.entity_types
        return {
            "insert": str(Constant(names.entity_name(row))),
            "id": names.entity_ids[row],
            "label": names.label(row),
            "type": types[row] if types else None,
            "count": None if counts is None else int(counts[row]),
        }

    def _relation(self, row: int) -> responses.Completion:
        names, counts = self.names, self.relation_counts
        return {
            "insert": str(Constant(names.relation_name(row))),
            "id": names.relation_ids[row],
            "label": names.relation_label(row),
            "type": None,
            "count": None if counts is None else int(counts[row]),
        }


def _best(
    index: NameIndex, prefix: str, counts: Counts | None, limit: int, least: int = 0
) -> list[int]:
    """The rows whose names fit best, then those with the most edges."""
    if prefix:
        rows, quality = index.find(prefix)
    else:
        rows = np.unique(index.rows)
        quality = np.zeros_like(rows)
    if counts is None:
        order = np.argsort(quality, kind="stable")
    else:
        enough = counts[rows] >= least
        rows, quality = rows[enough], quality[enough]
        order = np.lexsort((-counts[rows], quality))
    return rows[order[:limit]].tolist()
