"""Names of entities and relations: ids, human-readable labels, and the rows they stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import QueryError, choices, examples, nearest, short
from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.query.formula import Atom, Constant, Formula, literals, terms
from lmpnn_kge.query.patterns import Pattern

Int64s = npt.NDArray[np.int64]

Labels = list[str | None]

#: Whether an entity is the head of a known edge of a relation; relation r + R inverts r.
Seen = Callable[[int, int], bool]

#: Whether the entity of an id fits its place in a question.
Fits = Callable[[str], bool]

#: What `to_json` keeps.
STORED = ("entity_ids", "relation_ids", "entity_labels", "relation_labels")

#: Up to this many names, an error about an unknown one lists them all.
FEW = 30


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The ids of numbered entities and relations, with labels if they are known."""

    entity_ids: list[str]
    relation_ids: list[str]
    entity_labels: Labels | None = None
    relation_labels: Labels | None = None
    entity_types: Labels | None = None  # what an entity is, to tell those with one label apart

    @property
    def num_entities(self) -> int:
        return len(self.entity_ids)

    @property
    def num_relations(self) -> int:
        """R: without inverses."""
        return len(self.relation_ids)

    def has_ids_of(self, other: Vocabulary) -> bool:
        """Whether both have the same ids in the same order."""
        ours, theirs = (self.entity_ids, self.relation_ids), (other.entity_ids, other.relation_ids)
        return ours == theirs

    def rows_in(self, table: Vocabulary) -> Rows:
        """The row of each of our entities and relations in another table, joined by id."""
        return Rows(
            _rows(self.entity_ids, table._entities), _rows(self.relation_ids, table._relations)
        )

    def labelled_by(self, other: Vocabulary) -> Vocabulary:
        """The same ids with the labels that another vocabulary has for them."""
        return Vocabulary(
            self.entity_ids,
            self.relation_ids,
            _relabel(self.entity_ids, other.entity_ids, other.entity_labels),
            _relabel(self.relation_ids, other.relation_ids, other.relation_labels),
            _relabel(self.entity_ids, other.entity_ids, other.entity_types),
        )

    def resolve(self, pattern: Pattern, text: str | None = None) -> tuple[Int64s, Int64s]:
        """The rows of the names in a question: constants [c] and relations [r].

        An unknown name is a QueryError that points at it in the text of the question.
        """
        names = self.look_up(pattern, text)
        return names.constants, names.relations

    def look_up(
        self, pattern: Pattern, text: str | None = None, seen: Seen | None = None
    ) -> ResolvedNames:
        """`resolve`, in which known edges settle what a label means.

        If several entities have a label, and only one of them was seen with the relations of the
        question, that one is meant.
        """
        atoms = [literal for literal in literals(pattern.formula) if isinstance(literal, Atom)]
        relations: dict[str, int] = {}
        for atom in atoms:
            if atom.relation not in relations:
                with _pointing_at(text, atom.column):
                    relations[atom.relation] = self.relation(atom.relation)
        roles: dict[str, dict[int, None]] = {}  # the relations that a name is the head of
        for atom in atoms:
            row = relations[atom.relation]
            for term, role in zip(atom.terms, (row, row + self.num_relations), strict=True):
                if isinstance(term, Constant):
                    roles.setdefault(term.name, {})[role] = None
        constants: list[int] = []
        notes: list[str] = []
        for term in terms(pattern.formula):
            if isinstance(term, Constant):
                fits = self._fits([*roles.get(term.name, ())], seen)
                with _pointing_at(text, term.column):
                    constants.append(self._settle(term.name, fits, notes))
        return ResolvedNames(
            np.array(constants, np.int64), np.array([*relations.values()], np.int64), tuple(notes)
        )

    def with_ids(self, pattern: Pattern, constants: Int64s, relations: Int64s) -> Formula:
        """The question whose names, as `resolve` found them, are replaced by their ids."""
        return pattern.fill(
            [self.entity_ids[row] for row in constants],
            [(self.relation_ids[row], False) for row in relations],
        )

    def entity(self, name: str) -> int:
        """The row of an entity by its id or by its label."""
        return _look_up("entity", name, self._entities, self._entity_labels, types=self._types)

    def relation(self, name: str) -> int:
        """The row of a relation by its id or by its label."""
        return _look_up("relation", name, self._relations, self._relation_labels)

    def entity_name(self, entity: int) -> str:
        """What a question calls an entity: its label, if that means nothing else, or its id."""
        label, id_ = self.label(entity), self.entity_ids[entity]
        return label if _means(label, id_, self._entities, self._entity_labels) else id_

    def relation_name(self, relation: int) -> str:
        """What a question calls a relation: its label, if that means nothing else, or its id."""
        label, id_ = self.relation_label(relation), self.relation_ids[relation]
        return label if _means(label, id_, self._relations, self._relation_labels) else id_

    def _settle(self, name: str, fits: Fits | None, notes: list[str]) -> int:
        """The row of an entity by its name; a note says if a label was settled by what fits."""
        candidates = [] if name in self._entities else self._entity_labels.get(name, [])
        if len(candidates) > 1 and fits is not None:
            fitting = [id_ for id_ in candidates if fits(id_)]
            if len(fitting) == 1:
                notes.append(
                    f"{name!r} is the label of {len(candidates)} entities; {fitting[0]} was taken, "
                    "because only it has known edges of this kind"
                )
                return self._entities[fitting[0]]
        return _look_up("entity", name, self._entities, self._entity_labels, fits, self._types)

    def label(self, entity: int) -> str:
        """The human-readable name of an entity, or its id if it has none."""
        labels = self.entity_labels
        return (labels and labels[entity]) or self.entity_ids[entity]

    def _fits(self, roles: Sequence[int], seen: Seen | None) -> Fits | None:
        """Whether the entity of an id was seen as the head of all these relations."""
        if seen is None or not roles:
            return None
        return lambda id_: all(seen(self._entities[id_], role) for role in roles)

    def relation_label(self, relation: int) -> str:
        """The human-readable name of a relation, or its id if it has none."""
        labels = self.relation_labels
        return (labels and labels[relation]) or self.relation_ids[relation]

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in STORED}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Vocabulary:
        """Read what `to_json` wrote; ValueError says what is wrong with it."""
        if sorted(content) != sorted(STORED):
            raise ValueError(f"it must have the keys {', '.join(STORED)}")
        ids = {role: _ids(content[f"{role}_ids"], role) for role in ("entity", "relation")}
        labels = {role: _labels(content[f"{role}_labels"], ids[role], role) for role in ids}
        return cls(ids["entity"], ids["relation"], labels["entity"], labels["relation"])

    def __repr__(self) -> str:
        return f"Vocabulary({self.num_entities:,} entities, {self.num_relations:,} relations)"

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
    def _types(self) -> dict[str, str | None]:
        return dict(zip(self.entity_ids, self.entity_types or [], strict=False))

    @cached_property
    def _relation_labels(self) -> dict[str, list[str]]:
        return _by_label(self.relation_labels, self.relation_ids)


@dataclass(frozen=True, eq=False)
class ResolvedNames:
    """The rows of the names in a question, and notes on names that could mean something else."""

    constants: Int64s  # [c]
    relations: Int64s  # [r]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """Where the rows of one vocabulary stand in another; -1 marks a name that the other lacks."""

    entities: Int64s  # [E]
    relations: Int64s  # [R]

    def of(self, triples: Triples) -> Triples:
        """Triples in the rows of the other vocabulary, which has all their names."""
        heads, relations, tails = triples.T
        columns = self.entities[heads], self.relations[relations], self.entities[tails]
        return np.stack(columns, axis=1)


def name_rows(ids: Sequence[Any]) -> list[str]:
    """The ids of a table's rows as distinct strings; a row without one becomes a blank node."""
    named = [f"_:{row}" if id_ is None else id_ for row, id_ in enumerate(ids)]
    if not all(isinstance(id_, str) for id_ in named):
        raise ValueError("ids must be strings")
    repeated = [id_ for id_, count in Counter(named).items() if count > 1]
    if repeated:
        raise ValueError(f"ids must be distinct, but these repeat: {examples(repeated)}")
    return named


def _ids(value: Any, role: str) -> list[str]:
    if not isinstance(value, list) or None in value:
        raise ValueError(f"its {role} ids are not a list of names")
    return name_rows(value)


def _labels(value: Any, ids: list[str], role: str) -> Labels | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(label, str | None) for label in value):
        raise ValueError(f"its {role} labels are not a list of names")
    if len(value) != len(ids):
        raise ValueError(f"{len(ids)} {role} ids have {len(value)} labels")
    return value


def _rows(ids: Sequence[str], table: Mapping[str, int]) -> Int64s:
    return np.fromiter((table.get(id_, -1) for id_ in ids), np.int64, len(ids))


def _relabel(ids: list[str], labelled: list[str], labels: Labels | None) -> Labels | None:
    if labels is None:
        return None
    label_of = dict(zip(labelled, labels, strict=True))
    return [label_of.get(id_) for id_ in ids]


def _by_label(labels: Labels | None, ids: list[str]) -> dict[str, list[str]]:
    by_label: dict[str, list[str]] = {}
    for label, id_ in zip(labels or [], ids, strict=False):
        if label is not None:
            by_label.setdefault(label, []).append(id_)
    return by_label


def _means(label: str, id_: str, ids: Mapping[str, int], labels: Mapping[str, list[str]]) -> bool:
    """Whether a label says more than its id, and cannot mean anything else."""
    if label in ids or label.replace(" ", "_") == id_:
        return label == id_
    return labels.get(label) == [id_]


@contextmanager
def _pointing_at(text: str | None, column: int) -> Iterator[None]:
    """Let an error about a name point at it in the text of a question."""
    try:
        yield
    except QueryError as error:
        raise QueryError(str(error), text, column) from error


def _look_up(
    role: str,
    name: str,
    ids: dict[str, int],
    labels: dict[str, list[str]],
    fits: Fits | None = None,
    types: Mapping[str, str | None] = MappingProxyType({}),
) -> int:
    """The row of a name. Errors mention names that fit before those that do not."""
    if name in ids:
        return ids[name]
    candidates = labels.get(name, [])
    if len(candidates) == 1:
        return ids[candidates[0]]

    def prefer(other: str) -> bool:
        return fits is not None and any(map(fits, [other] if other in ids else labels[other]))

    if candidates:
        preferred = sorted(candidates, key=prefer, reverse=True)
        ordered = ", ".join(f"{id_} ({types[id_]})" if types.get(id_) else id_ for id_ in preferred)
        raise QueryError(
            f"{name!r} is the label of {len(candidates)} {role} ids: {short(ordered, 1000)}; "
            "write the id you mean"
        )
    names = {*ids, *labels}
    every = f"; {choices(name, names)}" if len(names) <= FEW else ""
    raise QueryError(f"there is no {role} {name!r}{nearest(name, names, prefer) or every}")
