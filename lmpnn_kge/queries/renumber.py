"""A query store in the numbers of a checkpoint, joined by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lmpnn_kge.errors import examples
from lmpnn_kge.graph.answers import Answers, Int32s
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.store import QueryStore


@dataclass(frozen=True)
class Report:
    """What of a store a join left out."""

    entities: list[str]  # names of the store that the table has not
    relations: list[str]
    queries: int = 0  # that mention them, or are left without answers
    answers: int = 0  # that are among them

    def __str__(self) -> str:
        unknown = {"entities": self.entities, "relations": self.relations}
        parts = [f"unknown {kind}: {examples(ids)}" for kind, ids in unknown.items() if ids]
        parts += [f"dropped: {self.queries:,} queries and {self.answers:,} answers of the others"]
        return "; ".join(parts if self.entities or self.relations else ["all names match"])


def join_store(
    store: QueryStore, entity_ids: list[str], relation_ids: list[str]
) -> tuple[QueryStore, Report]:
    """Number a store's queries as a table numbers those names, and leave out what it has not."""
    entities, relations = (
        _rows(store.entity_ids, entity_ids),
        _rows(store.relation_ids, relation_ids),
    )
    report = Report(
        [store.entity_ids[row] for row in (entities < 0).nonzero()[0]],
        [store.relation_ids[row] for row in (relations < 0).nonzero()[0]],
    )
    if (store.entity_ids, store.relation_ids) == (entity_ids, relation_ids):
        return store, report
    inverses = np.where(relations < 0, -1, relations + len(relation_ids))
    both = np.concatenate([relations, inverses])
    splits: dict[str, dict[str, Queries]] = {}
    for split, found in store.splits.items():
        splits[split] = {}
        for name, queries in found.items():
            splits[split][name], dropped, lost = _renumber(queries, entities, both)
            report = replace(
                report, queries=report.queries + dropped, answers=report.answers + lost
            )
    joined = replace(
        store, entity_ids=entity_ids, relation_ids=relation_ids, splits=splits, folder=None
    )
    return joined, report


def _rows(ids: list[str], table: list[str]) -> Int32s:
    """The row of each id in a table, or -1."""
    row = {id_: number for number, id_ in enumerate(table)}
    return np.array([row.get(id_, -1) for id_ in ids], np.int32)


def _renumber(queries: Queries, entities: Int32s, both: Int32s) -> tuple[Queries, int, int]:
    """The queries that are left, how many are not, and how many answers the others lost."""
    constants, relations = entities[queries.constants], both[queries.relations]
    easy, hard = (_renumber_answers(answers, entities) for answers in (queries.easy, queries.hard))
    # A query that asked for what is hard to find is not kept for what is easy.
    answered = (hard.counts > 0) | ((queries.hard.counts == 0) & (easy.counts > 0))
    keep = (constants >= 0).all(axis=1) & (relations >= 0).all(axis=1) & answered
    lost = (queries.easy.counts - easy.counts + queries.hard.counts - hard.counts)[keep].sum()
    left = Queries(queries.pattern, constants, relations, easy, hard).select(keep)
    return left, int((~keep).sum()), int(lost)


def _renumber_answers(answers: Answers, entities: Int32s) -> Answers:
    """The known answers in their new numbers, sorted again."""
    values = entities[answers.values]
    known = replace(answers, values=values).only(values >= 0)
    order = np.lexsort((known.values, known.owners))
    costs = None if known.costs is None else known.costs[order]
    return Answers(known.offsets, known.values[order], costs)
