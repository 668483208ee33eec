"""Cross-entropy over all entities, a cache's worth of scores at a time.

The scores of a batch against all entities are large, needed once, and soon gone: their gradient is
taken block by block while they are there, and only the sums are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

#: Scores that a block has: what the caches of a CPU hold, and nothing to a GPU.
CPU_BLOCK, BLOCK = 2**20, 2**26


def cross_entropy(
    estimates: Tensor,
    entities: Tensor,
    offsets: Sequence[int],
    owners: Tensor,
    tails: Tensor,
    weights: Tensor,
    smoothing: float = 0.0,
) -> Tensor:
    """Σ_j weights_j · −log softmax(⟨estimate of owners_j, ·⟩)[tails_j], one tail at a time.

    estimates [n, d], entities [E, d]; owners [m] in ascending order, tails [m] and weights [m], of
    distinct pairs; offsets [n + 1] are the places where those of a question begin, on the host.
    The other tails of a question are as right, so they are left out of the softmax. smoothing
    spreads that share of the target over all entities.
    """
    arguments = (estimates, entities, offsets, owners, tails, weights, smoothing)
    loss: Tensor = _CrossEntropy.apply(*arguments)  # type: ignore[no-untyped-call]
    return loss


def mask_of(
    rows: Tensor, ids: Tensor, columns: Tensor | None, shape: torch.Size, entities: int
) -> Tensor:
    """Where in scores [n, K] of some entities, or of all, the given ones of a row stand.

    Its shape and its work depend on no value, so that an accelerator need not wait for any.
    """
    if columns is None:
        place = ids
    else:
        place = torch.full((entities,), len(columns), device=ids.device)
        place[columns] = torch.arange(len(columns), device=ids.device)
        place = place[ids]  # what is in no column goes into one that is cut off
    found = torch.zeros(shape[0], shape[1] + 1, dtype=torch.bool, device=ids.device)
    found[rows, place] = True
    return found[:, :-1]


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        estimates: Tensor,
        entities: Tensor,
        offsets: Sequence[int],
        owners: Tensor,
        tails: Tensor,
        weights: Tensor,
        smoothing: float,
    ) -> Tensor:
        total = estimates.new_zeros(())
        grads = torch.empty_like(estimates), torch.zeros_like(entities)
        least, tiny = torch.finfo(estimates.dtype).min, torch.finfo(estimates.dtype).tiny
        mass = estimates.new_zeros(len(estimates)).index_add_(0, owners, weights)  # [n]
        size = max(1, (CPU_BLOCK if estimates.device.type == "cpu" else BLOCK) // len(entities))
        buffer = estimates.new_empty(min(size, len(estimates)), len(entities))
        for start in range(0, len(estimates), size):
            rows = slice(start, min(start + size, len(estimates)))
            first, last = offsets[rows.start], offsets[rows.stop]
            target = owners[first:last] - rows.start, tails[first:last]
            weight, block = weights[first:last], mass[rows]
            scores = torch.mm(estimates[rows], entities.T, out=buffer[: len(block)])
            truth = scores[target]
            if smoothing:
                total += smoothing * ((weight * truth).sum() - (block * scores.mean(1)).sum())
            scores[target] = -torch.inf
            top = scores.amax(1, keepdim=True).clamp_(min=least)
            scores.sub_(top).exp_()
            sums = scores.sum(1, keepdim=True).clamp_(min=tiny)
            gap = (top + sums.log())[target[0], 0] - truth  # from the tail up to all that are none
            total += (weight * F.softplus(gap)).sum()
            missed = weight * gap.sigmoid()
            scores.mul_(torch.zeros_like(block).index_add_(0, target[0], missed)[:, None] / sums)
            scores[target] = smoothing * weight - missed
            if smoothing:
                scores.sub_(smoothing / len(entities) * block[:, None])
            torch.mm(scores, entities, out=grads[0][rows])
            grads[1].addmm_(scores.T, estimates[rows])
        ctx.save_for_backward(*grads)
        return total

    @staticmethod
    def backward(ctx: Any, *grad: Any) -> Any:
        estimates, entities = ctx.saved_tensors
        return grad[0] * estimates, grad[0] * entities, None, None, None, None, None
