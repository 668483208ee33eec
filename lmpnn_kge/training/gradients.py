"""Gradients of a batch that is divided into parts, among one process or several.

The parts are added in pairs, in an order that does not depend on who computes them: for a batch of
four parts, one, two and four processes give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from lmpnn_kge.processes import Processes, sum_in_pairs

B = TypeVar("B")


def set_gradients(
    weights: Sequence[Tensor],
    parts: Sequence[B],
    loss: Callable[[B], tuple[Tensor, Tensor]],
    processes: Processes,
) -> Tensor:
    """Set the gradient of every weight for a whole batch, of which this process has some parts.

    loss gives a part's share of the value to minimise, and of the loss to report, which is returned
    for the whole batch. All parts must use the same weights.
    """
    if processes.alone and len(parts) == 1:
        return _backward(weights, *loss(parts[0]))
    entries: dict[int, list[tuple[Tensor, Tensor]]] = {}  # rows and values, by sparse weight

    def vectors() -> Iterator[Tensor]:
        for part in parts:
            reported = _backward(weights, *loss(part))
            for number, gradient in _gradients(weights, sparse=True):
                entry = gradient._indices()[0], gradient._values()
                entries.setdefault(number, []).append(entry)
            dense = [gradient.flatten() for _, gradient in _gradients(weights, sparse=False)]
            yield torch.cat([*dense, reported.view(1)])

    total = processes.sum(sum_in_pairs(vectors()))
    dense = dict(_gradients(weights, sparse=False))
    pieces = total[:-1].split([gradient.numel() for gradient in dense.values()])
    for number, piece in zip(dense, pieces, strict=True):
        weights[number].grad = piece.view_as(weights[number])
    for number, parts_of_it in entries.items():
        rows, values = (processes.concatenate(torch.cat(c)) for c in zip(*parts_of_it, strict=True))
        weights[number].grad = torch.sparse_coo_tensor(rows[None], values, weights[number].shape)
    return total[-1]


def _backward(weights: Sequence[Tensor], objective: Tensor, loss: Tensor) -> Tensor:
    """Set the gradients for one part, and return its loss."""
    for weight in weights:
        weight.grad = None
    objective.backward()
    return loss.detach()


def _gradients(weights: Sequence[Tensor], *, sparse: bool) -> Iterator[tuple[int, Tensor]]:
    """The gradients of one kind, with the numbers of their weights; some weights have none."""
    for number, weight in enumerate(weights):
        if weight.grad is not None and weight.grad.is_sparse == sparse:
            yield number, weight.grad
