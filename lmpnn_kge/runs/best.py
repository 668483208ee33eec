"""The best entities of questions: by the scores of all, block by block, or by an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from lmpnn_kge.methods.index import EntityIndex
from lmpnn_kge.methods.method import Method, Streamed
from lmpnn_kge.methods.vectors import Vectors
from lmpnn_kge.query.negations import exclusions
from lmpnn_kge.runs.questions import Batch
from lmpnn_kge.work.deadline import check_time

#: Entities near a vector that an index finds, and how many it finds at most, to find enough that
#: are offered.
CANDIDATES, MOST_CANDIDATES = 256, 2**14


@dataclass(frozen=True, eq=False)
class Best:
    """The best entities of each question of a batch, in their order."""

    rows: list[Tensor]  # [at most k] each
    scores: list[Tensor]  # theirs
    every: Tensor | None = None  # [n, E]: the scores of all entities, if they were held


#: For each question, the k best entities that are not omitted [n, E], those that fit [n, E] first.
#: Entities with equal scores are in the order of their rows, so that a larger k only adds some.
Choose = Callable[[Tensor, Tensor | None, int], Best]


def choosing(
    method: Method, batch: Batch, *, every: bool = False, index: EntityIndex | None = None
) -> Choose:
    """Score or embed questions, which may be refused, and return what chooses their best entities.

    every holds the scores of all entities even if the method need not. With an index, which needs a
    method that is streamed, an entity that it does not find may be missing.
    """
    streamed = method.streamed
    if streamed is None or (every and index is None):
        return partial(best_of_all, score(method, batch))
    vectors = vectors_of(streamed, batch)
    if index is not None:
        return partial(best_by_index, streamed, index, vectors)
    return partial(best_in_blocks, streamed, vectors)


def score(method: Method, batch: Batch) -> Tensor:
    """The scores of all entities, [n, E]."""
    part = _scored(batch)
    return method.answer(part.pattern, *part.tensors(method.device))(slice(None))


def vectors_of(method: Streamed, batch: Batch) -> Vectors:
    """The vectors whose products with those of entities are their scores."""
    part = _scored(batch)
    return Vectors.of([method.vectors(part.pattern, *part.tensors(method.device))])


def _scored(batch: Batch) -> Batch:
    """What a method sees: `? != entity` holds exactly, so that it needs no score."""
    return batch.part(exclusions(batch.pattern.formula)[0])


def excluded(method: Method, batch: Batch) -> Tensor:
    """The entities that `? != entity` excludes, as a mask [n, E]."""
    mask = no_entities(method, batch)
    rows = torch.arange(len(batch), device=method.device)
    for constant in exclusions(batch.pattern.formula)[1]:
        column = batch.constants[:, batch.pattern.constants.index(constant.name)]
        mask[rows, torch.from_numpy(column).to(method.device)] = True
    return mask


def no_entities(method: Method, batch: Batch) -> Tensor:
    """A mask [n, E] of nothing."""
    return torch.zeros(len(batch), method.num_entities, dtype=torch.bool, device=method.device)


def best_of_all(scores: Tensor, omitted: Tensor, fitting: Tensor | None, k: int) -> Best:
    """The best by the scores [n, E] of all entities."""
    rows = best_rows(scores, omitted, fitting, k)
    return Best(rows, [own[best] for own, best in zip(scores, rows, strict=True)], scores)


def best_rows(scores: Tensor, omitted: Tensor, fitting: Tensor | None, k: int) -> list[Tensor]:
    """The rows of the best by scores [n, E]."""
    finite = scores.clamp(min=torch.finfo(scores.dtype).min)  # a truth of 0 has the score -inf
    best: list[Tensor] = [torch.empty(0, dtype=torch.int64, device=scores.device)] * len(scores)
    for others in _groups(omitted, fitting):
        offered = finite.masked_fill(others, -torch.inf)
        best = [
            torch.cat([before, rows])[:k]
            for before, rows in zip(best, _best_of_each(offered, k), strict=True)
        ]
        if all(len(rows) == k for rows in best):
            break
    return best


@torch.inference_mode()
def best_in_blocks(
    method: Streamed, vectors: Vectors, omitted: Tensor, fitting: Tensor | None, k: int
) -> Best:
    """The same for vectors of n questions, with only the best of the blocks so far in memory."""
    groups = _groups(omitted, fitting)
    device = vectors.stacked.device
    nothing = torch.empty(0, device=device), torch.empty(0, dtype=torch.int64, device=device)
    best = [[nothing] * len(vectors) for _ in groups]
    for span, block in method.blocks():
        check_time()
        scores = vectors.scores(block)
        for others, running in zip(groups, best, strict=True):
            offered = scores.masked_fill(others[:, span], -torch.inf)
            for question, places in enumerate(_best_of_each(offered, k)):
                before, rows = running[question]
                values = torch.cat([before, scores[question, places]])
                # Stable: of equal scores, those of earlier blocks come first.
                order = values.argsort(descending=True, stable=True)[:k]
                running[question] = values[order], torch.cat([rows, span.start + places])[order]
    joined = [
        [torch.cat(parts)[:k] for parts in zip(*each, strict=True)]
        for each in zip(*best, strict=True)
    ]
    return Best([rows for _, rows in joined], [values for values, _ in joined])


@torch.inference_mode()
def best_by_index(
    method: Streamed,
    index: EntityIndex,
    vectors: Vectors,
    omitted: Tensor,
    fitting: Tensor | None,
    k: int,
) -> Best:
    """The same among the candidates of an index, of which only the rows are read.

    If few entities fit, all of them are candidates. If too few candidates are left, more are found.
    """
    found: list[tuple[Tensor, Tensor]] = []
    for question in range(len(vectors)):
        own = vectors.of_query(question)
        others, fits = omitted[question], None if fitting is None else fitting[question]
        preferred = None if fits is None else (fits & ~others).nonzero()[:, 0]
        count = max(CANDIDATES, 4 * k)
        while True:
            near = torch.from_numpy(index.candidates(own, count)[0]).to(others.device)
            if preferred is not None and len(preferred) <= MOST_CANDIDATES:
                near = torch.cat([near, preferred]).unique()
            rows = near[~others[near]]
            wanted = rows if fits is None else rows[fits[rows]]
            needed = k if preferred is None else min(k, len(preferred))
            enough = len(rows) >= k and len(wanted) >= needed
            if enough or count >= min(MOST_CANDIDATES, index.num_entities):
                break
            count *= 4
        scores = own.scores(method.unit(rows))
        marks = None if fits is None else fits[rows][None]
        (best,) = best_rows(scores, torch.zeros_like(scores, dtype=torch.bool), marks, k)
        found.append((rows[best], scores[0, best]))
    return Best([rows for rows, _ in found], [scores for _, scores in found])


def _groups(omitted: Tensor, fitting: Tensor | None) -> list[Tensor]:
    """For each group of entities, of which all come before those of the next, a mask of others."""
    return [omitted] if fitting is None else [omitted | ~fitting, omitted | fitting]


def _best_of_each(scores: Tensor, k: int) -> Iterator[Tensor]:
    """For each row of scores [n, E], the places of the k best finite ones, equal ones in order."""
    k = max(0, min(k, scores.shape[1]))
    if not k:
        yield from scores.new_empty(len(scores), 0, dtype=torch.int64)
        return
    for row, least in zip(scores, scores.topk(k).values[:, -1], strict=True):
        places = ((row >= least) & (row > -torch.inf)).nonzero()[:, 0]
        yield places[row[places].argsort(descending=True, stable=True)[:k]]
