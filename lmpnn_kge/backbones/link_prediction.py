"""Link prediction: filtered ranks of a split's triples, by the rule that LibKGE uses.

Both directions of each triple are asked. Other answers that are known to be true are left out. A
score is tied with the true one if it is as close as TIE_ABSOLUTE + TIE_RELATIVE · |true|; a rank
counts the scores above plus half of the tied ones (the true one among them), rounded down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.errors import BackboneError, DatasetError
from lmpnn_kge.graph.answers import spread
from lmpnn_kge.graph.formats.libkge import SPLITS
from lmpnn_kge.graph.knowledge_graph import Graph
from lmpnn_kge.graph.names import rows_of

TIE_ABSOLUTE = 1e-5
TIE_RELATIVE = 1e-4

#: How many scores are held at once; a handful of temporaries have the same size.
CHUNK_SCORES = 2**24

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ranking:
    """How high the true answers stand, averaged over triples and directions."""

    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float

    @classmethod
    def of(cls, ranks: Tensor) -> Ranking:
        """From ranks that count from 0."""
        ranks = ranks.cpu()  # not every device has double precision
        hits = [(ranks < k).double().mean().item() for k in (1, 3, 10)]
        return cls((1 / (1 + ranks.double())).mean().item(), *hits)


def rank_split(
    backbone: Backbone,
    graph: Graph,
    split: str,
    track: Callable[[Sequence[slice]], Iterable[slice]] = iter,
) -> Ranking:
    """Rank a split of the graph that a backbone was opened with, filtered by all known triples."""
    if backbone.entity_ids is None or backbone.relation_ids is None:
        raise BackboneError("a backbone without names cannot be joined to a dataset")
    entities = rows_of(graph.entity_ids, backbone.entity_ids)
    relations = rows_of(graph.relation_ids, backbone.relation_ids)

    def triples(name: str) -> Ints:
        s, p, o = graph.triples(name).T
        return np.stack([entities[s], relations[p], entities[o]], axis=1)

    asked = triples(split)
    if not len(asked):
        raise DatasetError(f"{split} of {graph.folder} has no triples to rank")
    known = np.concatenate([asked, *map(triples, SPLITS)])
    return rank_triples(backbone, asked, known, track)


def rank_triples(
    backbone: Backbone,
    triples: Ints,
    known: Ints,
    track: Callable[[Sequence[slice]], Iterable[slice]] = iter,
) -> Ranking:
    """Rank triples [n, 3] in both directions, leaving out other known ones [m, 3].

    Each question is scored once, however many answers it has. track may wrap the chunks of
    questions in a progress bar.
    """
    asked, answers = _questions(backbone, triples)
    filter_asked, filter_answers = _questions(backbone, known)
    questions, first, count = np.unique(asked, return_index=True, return_counts=True)
    filter_first = np.searchsorted(filter_asked, questions)
    filter_count = np.searchsorted(filter_asked, questions, side="right") - filter_first

    size = max(1, CHUNK_SCORES // backbone.num_entities)
    chunks = [slice(i, min(i + size, len(questions))) for i in range(0, len(questions), size)]
    ranks = []
    for chunk in track(chunks):
        relations, heads = np.divmod(questions[chunk], backbone.num_entities)
        scores = backbone.score_tails(heads, relations)  # [questions, E]
        if not torch.stack(scores.aminmax()).isfinite().all():
            raise BackboneError("scores overflow: the tables hold numbers that are too large")
        rows, places = spread(first[chunk], count[chunk])
        true = scores[rows, answers[places]]
        filter_rows, places = spread(filter_first[chunk], filter_count[chunk])
        scores[filter_rows, filter_answers[places]] = -torch.inf
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            ranks.append(_ranks(scores[rows[part]], true[part]))
    return Ranking.of(torch.cat(ranks))


def _questions(backbone: Backbone, triples: Ints) -> tuple[Ints, Ints]:
    """Both directions as sorted (relation · E + head) keys and their answers."""
    s, p, o = triples.T
    inverse = p + backbone.num_relations
    keys = np.concatenate([p, inverse]) * backbone.num_entities + np.concatenate([s, o])
    order = np.argsort(keys, kind="stable")
    return keys[order], np.concatenate([o, s])[order]


def _ranks(scores: Tensor, true: Tensor) -> Tensor:
    """Ranks from 0 of true scores [n] among others [n, E], from which they are left out."""
    true = true[:, None]
    tolerance = TIE_ABSOLUTE + TIE_RELATIVE * true.abs()
    # Counting booleans is ten times slower than adding up ones that are floats.
    ones = torch.empty_like(scores, dtype=torch.float32)
    reached = torch.ge(scores, true - tolerance, out=ones).sum(1)
    above = torch.gt(scores, true + tolerance, out=ones).sum(1)
    return above + (reached - above + 1) // 2
