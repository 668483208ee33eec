"""The most probable missing triples: a pass over the rows of scores, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.device import choose_device
from lmpnn_kge.errors import ConfigError, DatasetError, QueryError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS, Triples
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.runs.inputs import open_embedding
from lmpnn_kge.runs.predictions import Predictions
from lmpnn_kge.search.edges import EdgeProbability
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.work.listener import SILENT, Listener


@dataclass(frozen=True)
class Wanted:
    """Which triples to predict, by ids or labels; nothing chosen means everything."""

    relations: Sequence[str] = ()
    heads: Sequence[str] = ()
    tails: Sequence[str] = ()
    limit: int = 100
    min_probability: float = 0.0
    any_pair: bool = False  # also entities that the relation was never seen with
    new: bool = False  # without triples of held-out splits

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ConfigError(f"limit must be at least 1, not {self.limit}")
        if not 0 <= self.min_probability <= 1:
            raise ConfigError(
                f"min_probability must be between 0 and 1, not {self.min_probability}"
            )

    @property
    def from_tails(self) -> bool:
        """Whether rows ask for heads: only tails are chosen."""
        return bool(self.tails) and not self.heads


def predict(
    checkpoint: str | Path,
    *,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    relations: Sequence[str] = (),
    heads: Sequence[str] = (),
    tails: Sequence[str] = (),
    limit: int = 100,
    min_probability: float = 0.0,
    any_pair: bool = False,
    new: bool = False,
    device: str = "auto",
    listener: Listener = SILENT,
) -> Predictions:
    """The most probable triples that the training graph of a checkpoint lacks.

    The dataset is found as `train` finds it. By default an entity is only tried with relations that
    it was seen with, on the side it was seen on; any_pair tries all. new leaves out triples of
    held-out splits.
    """
    wanted = Wanted(relations, heads, tails, limit, min_probability, any_pair, new)
    opened, graph, notes = open_embedding(checkpoint, backbone=backbone, dataset=dataset)
    for note in notes:
        listener.note(note)
    return predict_missing(opened.placed(choose_device(device)), graph, wanted, listener)


@torch.inference_mode()
def predict_missing(
    backbone: Backbone, graph: KnowledgeGraph, wanted: Wanted, listener: Listener = SILENT
) -> Predictions:
    """The most probable triples that the training edges of a graph lack."""
    vocabulary = backbone.vocabulary.labelled_by(graph.vocabulary)
    splits = _splits(backbone, graph)
    facts = _facts(backbone, [splits["train"]])
    questions = _questions(wanted, vocabulary, facts)
    listener.begin("fitting probabilities")
    probability = EdgeProbability.fit(
        backbone,
        facts,
        splits["valid"],
        population="every",
        held_out=len(splits["valid"]) + len(splits["test"]),
    )
    omitted = _facts(backbone, splits.values()) if wanted.new else facts
    best = _best(
        probability, questions, omitted, _columns(wanted, vocabulary), wanted.limit, listener
    )
    probabilities = probability.calibration(best.logits).double().cpu().numpy().round(6)
    triples = _triples(best, facts)
    order = np.lexsort((*triples.T[::-1], -best.logits.cpu().numpy()))  # the same for equal ones
    order = order[probabilities[order] >= wanted.min_probability]
    triples = triples[order]
    confirmed = _confirmed(triples, splits, facts)
    return Predictions(vocabulary, triples, probabilities[order], confirmed)


class _Best:
    """The best edges so far. Twice as many are kept at times, so that they are seldom sorted."""

    def __init__(self, limit: int, device: torch.device):
        self.limit = limit
        none = torch.empty(0, dtype=torch.int64, device=device)
        self.logits = torch.empty(0, device=device)  # [n]
        self.keys, self.tails = none, none  # [n] each: head and relation, and tail
        self.least = -torch.inf  # what an edge must exceed

    def add(self, keys: Tensor, logits: Tensor) -> None:
        """Take the edges of rows: keys [m] and logits [m, E]."""
        flat, width = logits.view(-1), logits.shape[1]
        places = (flat > self.least).nonzero()[:, 0]
        if not len(places):
            return
        self.logits = torch.cat([self.logits, flat[places]])
        self.keys = torch.cat([self.keys, keys[places // width]])
        self.tails = torch.cat([self.tails, places % width])
        if len(self.logits) >= 2 * self.limit:
            self.shrink()

    def shrink(self) -> None:
        """Keep the best only, the best first."""
        best = self.logits.topk(min(self.limit, len(self.logits)))
        self.logits = best.values
        self.keys, self.tails = self.keys[best.indices], self.tails[best.indices]
        if len(best.values) == self.limit:
            self.least = float(best.values[-1])


def _best(
    probability: EdgeProbability,
    questions: Sequence[tuple[int, Tensor]],
    omitted: Facts,
    columns: Sequence[int],
    limit: int,
    listener: Listener,
) -> _Best:
    """The best edges of questions that are not omitted, and end in the columns if there are any."""
    device = omitted.keys.device
    best = _Best(limit, device)
    excluded = torch.ones(omitted.num_entities, dtype=torch.bool, device=device)
    excluded[list(columns)] = False
    listener.begin("predicting", sum(len(heads) for _, heads in questions))
    for relation, heads in questions:
        for part in heads.split(probability.chunk):
            keys = omitted.keys_of(part, torch.full_like(part, relation))
            logits = probability.logits(keys)
            logits[omitted.tails_of(keys)] = -torch.inf
            if columns:
                logits.masked_fill_(excluded, -torch.inf)
            best.add(keys, logits)
            listener.advance(len(part))
    best.shrink()
    return best


def _questions(wanted: Wanted, vocabulary: Vocabulary, facts: Facts) -> list[tuple[int, Tensor]]:
    """The relations to ask with, each with the entities to ask for: heads, or tails of inverses."""
    rows = [vocabulary.relation(name) for name in wanted.relations]
    shift = facts.num_relations if wanted.from_tails else 0
    relations = [row + shift for row in dict.fromkeys(rows) or range(facts.num_relations)]
    names = wanted.tails if wanted.from_tails else wanted.heads
    chosen = torch.tensor(sorted({vocabulary.entity(name) for name in names}), dtype=torch.int64)
    chosen = chosen.to(facts.keys.device)
    if wanted.any_pair:
        every = torch.arange(facts.num_entities, device=chosen.device)
        return [(relation, chosen if names else every) for relation in relations]
    questions = []
    for relation in relations:
        seen = facts.heads(relation)
        questions.append((relation, seen[torch.isin(seen, chosen)] if names else seen))
    if not any(len(seen) for _, seen in questions):
        side = "tails" if wanted.from_tails else "heads"
        raise QueryError(
            f"the training edges have none of the chosen {side} with a chosen relation; "
            "--any tries them nevertheless"
        )
    return questions


def _columns(wanted: Wanted, vocabulary: Vocabulary) -> list[int]:
    """The entities that predicted edges of a row must end in; all if there are none."""
    return [vocabulary.entity(name) for name in wanted.tails] if wanted.heads else []


def _splits(backbone: Backbone, graph: KnowledgeGraph) -> dict[str, Triples]:
    """The triples of each split in the rows of the backbone."""
    rows = graph.vocabulary.rows_in(backbone.vocabulary)
    unknown = int((rows.entities < 0).sum() + (rows.relations < 0).sum())
    if unknown:
        raise DatasetError(f"{graph.folder} has {unknown} names that the checkpoint does not have")
    return {split: rows.of(graph.triples(split)) for split in SPLITS}


def _facts(backbone: Backbone, splits: Iterable[Triples]) -> Facts:
    triples = np.concatenate(list(splits))
    facts = Facts.of(triples, backbone.num_entities, backbone.num_relations)
    return facts.to(backbone.device)


def _triples(best: _Best, facts: Facts) -> Triples:
    """The best edges as triples with a relation that is not an inverse."""
    width, count = 2 * facts.num_relations, facts.num_relations
    sources, relations, ends = best.keys // width, best.keys % width, best.tails
    inverted = relations >= count
    heads, tails = torch.where(inverted, ends, sources), torch.where(inverted, sources, ends)
    return torch.stack([heads, relations % count, tails], 1).cpu().numpy()


def _confirmed(triples: Triples, splits: dict[str, Triples], facts: Facts) -> list[str | None]:
    """The first held-out split that has each triple."""

    def key(part: Triples) -> Triples:
        heads, relations, tails = part.T
        return (heads * facts.num_relations + relations) * facts.num_entities + tails

    confirmed = np.full(len(triples), None, object)
    for split in reversed(SPLITS[1:]):
        confirmed[np.isin(key(triples), key(splits[split]))] = split
    return confirmed.tolist()
