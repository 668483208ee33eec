"""Describing a graph: everything that its profile has, counted in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from lmpnn_kge.graph.components import component_sizes
from lmpnn_kge.graph.profile import GraphProfile, Named, RelationProfile, Rule
from lmpnn_kge.graph.relation_rules import Leaks, find_leaks
from lmpnn_kge.graph.triples import SPLITS, Triples
from lmpnn_kge.graph.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]

#: Entities that a sample shows.
SAMPLE = 3


def describe_graph(
    name: str,
    names: Vocabulary,
    splits: Mapping[str, Triples],
    edges: tuple[Triples, Int64s],
) -> GraphProfile:
    """Count everything in columns; edges has every triple once, with the number of its split."""
    triples, level = edges
    degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=names.num_entities)
    train, held_out = triples[level == 0], triples[level > 0]
    seen_entities = _marked(train[:, [0, 2]], names.num_entities)
    seen_relations = _marked(train[:, 1], names.num_relations)
    unseen = ~seen_entities[held_out[:, [0, 2]]].all(1) | ~seen_relations[held_out[:, 1]]
    leaks = find_leaks(triples, level, names.num_relations)
    sizes = {split: len(splits[split]) for split in SPLITS}
    return GraphProfile(
        name=name,
        entities=names.num_entities,
        triples=len(triples),
        splits=sizes,
        relations=_relations(names, triples, level),
        labelled_entities=sum(label is not None for label in names.entity_labels or []),
        degree=_degrees(degree),
        hub=_entity(names, int(degree.argmax()), int(degree.max())) if len(triples) else None,
        components=tuple(component_sizes(triples, names.num_entities).tolist()),
        isolated=int((degree == 0).sum()),
        unseen_entities=int((_marked(held_out[:, [0, 2]], len(degree)) & ~seen_entities).sum()),
        unseen_relations=int(
            (_marked(held_out[:, 1], names.num_relations) & ~seen_relations).sum()
        ),
        unseen_triples=int(unseen.sum()),
        repeated_triples=sum(sizes.values()) - len(triples),
        rules=tuple(_rules(leaks, names)),
        leaked=leaks.test_triples,
    )


def _marked(rows: Int64s, size: int) -> npt.NDArray[np.bool_]:
    """A mask of so many entries, in which some rows are true."""
    mask = np.zeros(size, bool)
    mask[rows] = True
    return mask


def _degrees(degree: Int64s) -> dict[str, float]:
    if not len(degree):
        return {"median": 0.0, "mean": 0.0, "maximum": 0.0}
    median, mean, maximum = np.median(degree), degree.mean(), degree.max()
    return {"median": float(median), "mean": float(mean), "maximum": float(maximum)}


def _entity(names: Vocabulary, row: int, count: int | None = None) -> Named:
    labels = names.entity_labels
    return Named(names.entity_ids[row], labels[row] if labels else None, count)


def _relation(names: Vocabulary, row: int, count: int | None = None) -> Named:
    labels = names.relation_labels
    return Named(names.relation_ids[row], labels[row] if labels else None, count)


def _rules(leaks: Leaks, names: Vocabulary) -> Iterator[Rule]:
    for rule in leaks.rules:
        premise, conclusion = (_relation(names, row) for row in (rule.premise, rule.conclusion))
        yield Rule(premise, conclusion, rule.inverse, rule.shared, rule.pairs, rule.in_test)


def _relations(names: Vocabulary, triples: Triples, level: Int64s) -> tuple[RelationProfile, ...]:
    order = np.argsort(triples[:, 1], kind="stable")
    starts = np.searchsorted(triples[order, 1], np.arange(names.num_relations + 1))
    profiles = []
    for relation in range(names.num_relations):
        rows = order[starts[relation] : starts[relation + 1]]
        heads, tails = (np.unique(triples[rows, end], return_counts=True) for end in (0, 2))
        by_split = np.bincount(level[rows], minlength=len(SPLITS)).tolist()
        head, _, tail = triples[rows[len(rows) // 2]].tolist() if len(rows) else (0, 0, 0)
        profiles.append(
            RelationProfile(
                relation=_relation(names, relation, len(rows)),
                splits=dict(zip(SPLITS, by_split, strict=True)),
                heads=len(heads[0]),
                tails=len(tails[0]),
                tails_per_head=len(rows) / max(1, len(heads[0])),
                heads_per_tail=len(rows) / max(1, len(tails[0])),
                example=(_entity(names, head), _entity(names, tail)) if len(rows) else None,
                head_sample=_most_frequent(names, *heads),
                tail_sample=_most_frequent(names, *tails),
            )
        )
    return tuple(sorted(profiles, key=lambda profile: -profile.triples))


def _most_frequent(names: Vocabulary, entities: Int64s, counts: Int64s) -> tuple[Named, ...]:
    best = np.argsort(-counts, kind="stable")[:SAMPLE]
    return tuple(_entity(names, int(entities[place]), int(counts[place])) for place in best)
