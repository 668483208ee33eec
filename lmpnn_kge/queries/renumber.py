"""A query store in the rows of a checkpoint, joined by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lmpnn_kge.errors import examples
from lmpnn_kge.graph.answers import Answers, Int64s, answer_order
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.store import QueryStore


@dataclass(frozen=True)
class Dropped:
    """What of a store a join left out."""

    entities: list[str]  # names of the store that the table lacks
    relations: list[str]
    queries: int = 0  # that mention them, or are left without answers
    answers: int = 0  # of the other queries, that are among them

    def __bool__(self) -> bool:
        return bool(self.entities or self.relations)

    def __str__(self) -> str:
        if not self:
            return "all names match"
        unknown = {"entities": self.entities, "relations": self.relations}
        parts = [f"unknown {role}: {examples(ids)}" for role, ids in unknown.items() if ids]
        parts.append(
            f"dropped: {self.queries:,} queries and {self.answers:,} answers of the others"
        )
        return "; ".join(parts)


def renumber_store(store: QueryStore, table: Vocabulary) -> tuple[QueryStore, Dropped]:
    """Number a store's queries by the rows of a table, and leave out what the table lacks."""
    names = store.vocabulary
    rows = names.rows_in(table)
    dropped = Dropped(
        [names.entity_ids[row] for row in (rows.entities < 0).nonzero()[0]],
        [names.relation_ids[row] for row in (rows.relations < 0).nonzero()[0]],
    )
    if names.has_ids_of(table):
        return store, dropped
    inverses = np.where(rows.relations < 0, -1, rows.relations + table.num_relations)
    both = np.concatenate([rows.relations, inverses])
    splits: dict[str, dict[str, Queries]] = {}
    for split, patterns in store.splits.items():
        splits[split] = {}
        for name, queries in patterns.items():
            splits[split][name], lost_queries, lost_answers = _renumber(
                queries, rows.entities, both
            )
            dropped = replace(
                dropped,
                queries=dropped.queries + lost_queries,
                answers=dropped.answers + lost_answers,
            )
    return replace(store, vocabulary=table, splits=splits), dropped


def _renumber(queries: Queries, entities: Int64s, relations: Int64s) -> tuple[Queries, int, int]:
    """The queries that remain, how many do not, and how many answers the remaining ones lost."""
    constants = entities[queries.constants].astype(np.int32)
    predicates = relations[queries.relations].astype(np.int32)
    easy, hard = (_renumber_answers(answers, entities) for answers in (queries.easy, queries.hard))
    # A query that had hard answers is not kept for its easy ones alone.
    answered = (hard.counts > 0) | ((queries.hard.counts == 0) & (easy.counts > 0))
    keep = (constants >= 0).all(axis=1) & (predicates >= 0).all(axis=1) & answered
    lost = (queries.easy.counts - easy.counts + queries.hard.counts - hard.counts)[keep].sum()
    renumbered = Queries(queries.pattern, constants, predicates, easy, hard, queries.rows)
    remaining = renumbered.select(keep)
    return remaining, int((~keep).sum()), int(lost)


def _renumber_answers(answers: Answers, entities: Int64s) -> Answers:
    """The known answers in their new rows, sorted again."""
    values = entities[answers.values].astype(np.int32)
    is_known = np.logical_and.reduce(np.atleast_2d(values.T >= 0))  # all entities of a tuple
    known = replace(answers, values=values).only(is_known)
    order = answer_order(known.owners, known.values)
    costs = None if known.costs is None else known.costs[order]
    return Answers(known.offsets, known.values[order], costs)
