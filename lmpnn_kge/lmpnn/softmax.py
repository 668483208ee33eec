"""Cross-entropy over all entities, in blocks of scores that fit a CPU's cache.

The scores of a batch against all entities are a large matrix that is needed only once. The gradient
is therefore computed together with the loss, block by block, and no block is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

#: Scores in a block: as many as the caches of a CPU hold; more on a GPU, which has the memory.
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
    """Σ_j weights_j · −log softmax(⟨estimate of owners_j, ·⟩)[tails_j], with the tails kept apart.

    estimates [n, d], entities [E, d]. Question owners_j has the tail tails_j; pairs are distinct,
    owners [m] ascend, and offsets [n + 1], on the host, are the positions where the tails of each
    question begin. All tails of a question are right answers, so the softmax of one leaves out the
    others. smoothing spreads that share of the target over all entities.
    """
    arguments = (estimates, entities, offsets, owners, tails, weights, smoothing)
    loss: Tensor = _CrossEntropy.apply(*arguments)  # type: ignore[no-untyped-call]
    return loss


def mask_of(
    rows: Tensor, ids: Tensor, columns: Tensor | None, shape: torch.Size, entities: int
) -> Tensor:
    """A mask [n, K] of the pairs (rows_j, ids_j), in scores of the entities in columns, or of all.

    No shape depends on a value, so that the host need not wait for an accelerator. Therefore an
    entity without a column is not filtered out: it gets an additional column, which is cut off.
    """
    column_of = columns_of(ids, columns, entities)
    mask = torch.zeros(shape[0], shape[1] + 1, dtype=torch.bool, device=ids.device)
    mask[rows, column_of] = True
    return mask[:, :-1]


def columns_of(ids: Tensor, columns: Tensor | None, entities: int) -> Tensor:
    """The positions of ids among the entities in columns [K], or in all; K if it has none."""
    if columns is None:
        return ids
    position = torch.full((entities,), len(columns), device=ids.device)
    position[columns] = torch.arange(len(columns), device=ids.device)
    return position[ids]


def noise_and_truths(
    logits: Tensor, rows: Tensor, columns: Tensor, hidden: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """logsumexp of logits [n, K] without some of them, [n], and those, [m].

    The logits at the distinct pairs (rows_j, columns_j) are left out, or only those that are hidden
    [m]; the gradient of a truth is then not used. Overwrites what is left out.
    """
    arguments = (logits, rows, columns, hidden)
    both: tuple[Tensor, Tensor] = _Noise.apply(*arguments)  # type: ignore[no-untyped-call]
    return both


class _Noise(torch.autograd.Function):
    """The logsumexp is read off the softmax, which is its gradient, and so needs no own passes."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, rows: Tensor, columns: Tensor, hidden: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        truths = logits[rows, columns]
        left_out = torch.full_like(truths, -torch.inf)
        logits[rows, columns] = left_out if hidden is None else left_out.where(hidden, truths)
        softmax = logits.softmax(1)
        top, largest = logits.amax(1).float(), softmax.amax(1).float()  # exp(top − noise) = largest
        ctx.save_for_backward(softmax, rows, columns, hidden)
        # If all logits of a query are left out, its softmax is not a number.
        return torch.where(top == -torch.inf, top, top - largest.log()), truths.float()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        softmax, rows, columns, hidden = ctx.saved_tensors
        grad = softmax * grads[0][:, None].to(softmax.dtype)
        # Assigned, not added: what was left out has no softmax if all logits of a query were.
        truths = grads[1].to(grad.dtype)
        grad[rows, columns] = truths if hidden is None else grad[rows, columns].where(~hidden, 0)
        return grad, None, None, None


class _CrossEntropy(torch.autograd.Function):
    """The loss and, in the same pass, its gradients; `backward` only scales them.

    For a tail with score s let N be the scores of all entities that are not tails of its question.
    With gap = logsumexp(N) − s, its loss is softplus(gap), and the gradient is

        ∂/∂s = −σ(gap),    ∂/∂N_e = σ(gap) · softmax(N)_e.

    One buffer of a block's size holds first the scores, then exp(N − max N) with 0 for the tails,
    then the gradient of the scores. Its two products with the embeddings are all that is kept.
    """

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
            if smoothing:  # (1 − a) · loss of tail + a · mean loss = loss + a · (s − mean score)
                total += smoothing * ((weight * truth).sum() - (block * scores.mean(1)).sum())
            scores[target] = -torch.inf
            # The clamps keep a question finite if all entities are its tails: then N is empty.
            top = scores.amax(1, keepdim=True).clamp_(min=least)
            scores.sub_(top).exp_()
            sums = scores.sum(1, keepdim=True).clamp_(min=tiny)
            gap = (top + sums.log())[target[0], 0] - truth
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
