"""Names of entities and relations: ids, human-readable labels, and the numbers they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import QueryError, choices, nearest
from lmpnn_kge.query.formula import Atom, Constant, literals
from lmpnn_kge.query.patterns import Pattern

Ints = npt.NDArray[np.integer[Any]]

#: So many names are all listed where a wrong one is like none of them.
FEW = 30


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The ids of numbered entities and relations, and labels where they are known."""

    entity_ids: list[str]
    relation_ids: list[str]
    entity_labels: list[str | None] | None = None
    relation_labels: list[str | None] | None = None

    def resolve(self, pattern: Pattern, text: str | None = None) -> tuple[Ints, Ints]:
        """The numbers of the names in a question; an error points at a name in its text."""
        places: dict[tuple[str, str], int] = {}
        for literal in literals(pattern.formula):
            if isinstance(literal, Atom):
                places.setdefault(("relation", literal.relation), literal.column)
            for term in literal.terms:
                if isinstance(term, Constant):
                    places.setdefault(("entity", term.name), term.column)
        numbers: dict[str, list[int]] = {"entity": [], "relation": []}
        for (kind, name), column in places.items():
            try:
                look_up = self.entity if kind == "entity" else self.relation
                numbers[kind].append(look_up(name))
            except QueryError as error:
                raise QueryError(str(error), text, column) from error
        return np.array(numbers["entity"], np.int64), np.array(numbers["relation"], np.int64)

    def entity(self, name: str) -> int:
        """The number of an entity by its id or by its label."""
        return _look_up("entity", name, self._entities, self._entity_labels)

    def relation(self, name: str) -> int:
        return _look_up("relation", name, self._relations, self._relation_labels)

    def label(self, entity: int) -> str:
        """The human-readable name of an entity, or else its id."""
        labels = self.entity_labels
        return (labels and labels[entity]) or self.entity_ids[entity]

    @cached_property
    def _entities(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.entity_ids)}

    @cached_property
    def _relations(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.relation_ids)}

    @cached_property
    def _entity_labels(self) -> dict[str, list[str]]:
        return _by_label(self.entity_labels, self.entity_ids)

    @cached_property
    def _relation_labels(self) -> dict[str, list[str]]:
        return _by_label(self.relation_labels, self.relation_ids)


def _by_label(labels: list[str | None] | None, ids: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for label, id_ in zip(labels or [], ids, strict=False):
        if label is not None:
            found.setdefault(label, []).append(id_)
    return found


def _look_up(kind: str, name: str, ids: dict[str, int], labels: dict[str, list[str]]) -> int:
    if name in ids:
        return ids[name]
    candidates = labels.get(name, [])
    if len(candidates) == 1:
        return ids[candidates[0]]
    if candidates:
        raise QueryError(
            f"{name!r} is the label of {len(candidates)} {kind} ids: {', '.join(candidates)}; "
            "write the one you mean"
        )
    names = {*ids, *labels}
    every = f"; {choices(name, names)}" if len(names) <= FEW else ""
    raise QueryError(f"there is no {kind} {name!r}{nearest(name, names) or every}")
