"""Link prediction: filtered ranks of a split's triples, by LibKGE's rule.

Each triple gives two questions: which tail, and which head. Other answers that are known to be true
are filtered out. A score is tied with the true one if they differ by at most
TIE_ABSOLUTE + TIE_RELATIVE · |true|. A rank is the number of higher scores plus half the number of
tied scores (the true one included), rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.errors import BackboneError, DatasetError
from lmpnn_kge.graph.answers import spread
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS, both_directions
from lmpnn_kge.processes import current
from lmpnn_kge.work.listener import SILENT, Listener

TIE_ABSOLUTE = 1e-5
TIE_RELATIVE = 1e-4

#: Number of scores in memory at a time; a few temporary tensors have the same size.
CHUNK_SCORES = 2**24

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ranking:
    """Rank metrics, averaged over triples and directions."""

    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float

    @classmethod
    def of(cls, ranks: Tensor) -> Ranking:
        """Average ranks that count from 0."""
        ranks = ranks.cpu()  # not every device has double precision
        hits = [(ranks < k).double().mean().item() for k in (1, 3, 10)]
        return cls((1 / (1 + ranks.double())).mean().item(), *hits)


def rank_split(
    backbone: Backbone,
    graph: KnowledgeGraph,
    split: str,
    listener: Listener = SILENT,
) -> Ranking:
    """Rank a split of the graph that a backbone was opened with, filtered by all known triples."""
    rows = graph.vocabulary.rows_in(backbone.vocabulary)
    triples = rows.of(graph.triples(split))
    if not len(triples):
        raise DatasetError(f"{split} of {graph.folder} has no triples to rank")
    known = np.concatenate([triples, *(rows.of(graph.triples(name)) for name in SPLITS)])
    return rank_triples(backbone, triples, known, listener)


def rank_triples(
    backbone: Backbone,
    triples: Ints,
    known: Ints,
    listener: Listener = SILENT,
) -> Ranking:
    """Rank triples [n, 3] in both directions, filtered by the known triples [m, 3].

    Each question is scored once, even if it has several answers. The processes of a job take turns
    with chunks of questions.
    """
    triples, known = (np.asarray(rows, np.int64).reshape(-1, 3) for rows in (triples, known))
    if not len(triples):
        raise DatasetError("there are no triples to rank")
    processes = current()
    keys, answers = _questions(backbone, triples)
    known_keys, known_answers = _questions(backbone, known)
    questions, first, count = np.unique(keys, return_index=True, return_counts=True)
    known_first = np.searchsorted(known_keys, questions)
    known_count = np.searchsorted(known_keys, questions, side="right") - known_first

    size = max(1, CHUNK_SCORES // backbone.num_entities)
    starts = range(0, len(questions), size)[processes.rank :: processes.count]
    chunks = [slice(start, min(start + size, len(questions))) for start in starts]
    ranks = torch.zeros(len(answers), device=backbone.device)  # [2n]
    listener.begin("ranking", len(questions))
    for chunk in chunks:
        relations, heads = np.divmod(questions[chunk], backbone.num_entities)
        scores = backbone.score_tails(heads, relations)  # [questions, E]
        if not torch.stack(scores.aminmax()).isfinite().all():
            raise BackboneError("scores overflow: the tables have numbers that are too large")
        rows, places = spread(first[chunk], count[chunk])
        true = scores[rows, answers[places]]
        known_rows, indexes = spread(known_first[chunk], known_count[chunk])
        scores[known_rows, known_answers[indexes]] = -torch.inf
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            ranks[places[part]] = _ranks(scores[rows[part]], true[part])
        listener.advance(processes.count * len(scores))  # the others have done as many
    return Ranking.of(processes.sum(ranks))


def _questions(backbone: Backbone, triples: Ints) -> tuple[Ints, Ints]:
    """Encode both directions as sorted keys, relation · E + head; returns keys and answers."""
    s, p, o = both_directions(triples, backbone.num_relations).T
    keys = p * backbone.num_entities + s
    order = np.argsort(keys, kind="stable")
    return keys[order], o[order]


def _ranks(scores: Tensor, true: Tensor) -> Tensor:
    """Compute ranks from 0 of true scores [n] among the scores [n, E] of the other entities."""
    true = true[:, None]
    tolerance = TIE_ABSOLUTE + TIE_RELATIVE * true.abs()
    # Summing ones that are floats is ten times faster than counting booleans.
    ones = torch.empty_like(scores, dtype=torch.float32)
    reached = torch.ge(scores, true - tolerance, out=ones).sum(1)
    above = torch.gt(scores, true + tolerance, out=ones).sum(1)
    return above + (reached - above + 1) // 2
