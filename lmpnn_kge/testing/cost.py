"""Checks of the cost of a message. Machines differ, so only orders of magnitude fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from lmpnn_kge.testing.forward import relation_ids, states, tensors_in
from lmpnn_kge.testing.outcome import Subject, check, demand

COST = "The cost of a message grows with its width"

#: How many times slower than a matrix product of the same rows and width f may be.
SLOW = 10_000

#: How many times more memory a message may need if it is four times wider; a matrix needs 16 ×.
GROWTH = 8


@check(COST)
def speed(subject: Subject) -> str:
    """f is not orders of magnitude slower than a matrix product of its width."""
    model = subject.make(64)
    z, ids = states(model, 2048), relation_ids(model, 2048)
    square = torch.randn(model.dim, model.dim)
    with torch.no_grad():
        taken = _seconds(lambda: model.forward(z, ids))
        product = _seconds(lambda: z @ square)
    ratio = taken / product
    demand(
        ratio < SLOW,
        f"less than {SLOW:,} × the time of a product [{len(z)}, {model.dim}] × [{model.dim}, …]",
        f"{ratio:,.0f} ×",
    )
    return f"{ratio:.1f} × a product, {len(z) / taken:,.0f} messages/s"


def _seconds(call: Callable[[], object]) -> float:
    """CPU time of a call: the best of a few runs, after one to warm up."""
    call()
    times = []
    for _ in range(5):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return max(1e-6, min(times))


class _Largest(TorchFunctionMode):
    """Records the size of the largest storage behind any tensor."""

    size = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tensors_in(result):
            self.size = max(self.size, tensor.untyped_storage().nbytes())
        return result


@check(COST)
def memory(subject: Subject) -> str:
    """The memory of a message grows with its width, not with the square of its width."""
    narrow, wide = _numbers(subject, 32), _numbers(subject, 128)
    growth = wide[1] / narrow[1] * 4 * narrow[0] / wide[0]
    demand(
        growth < GROWTH,
        f"messages of width {wide[0]} that take about {wide[0] / narrow[0]:.0f} × the memory of "
        f"messages of width {narrow[0]}",
        f"{wide[1] / narrow[1]:.1f} ×: {wide[1]:,.0f} numbers for each; is a matrix copied for "
        "each row? matmul_by_relation avoids that",
    )
    return f"{wide[1] / wide[0]:.1f} × its width"


def _numbers(subject: Subject, width: int) -> tuple[int, float]:
    """Width, and numbers per message in the largest tensor that f makes.

    Measured on torch's meta device, where a tensor has a size and needs no memory.
    """
    model = subject.make(width, entities=2, relations=2).to("meta")
    rows = 2**16
    z = torch.empty(rows, model.dim, device="meta")
    ids = torch.empty(rows, dtype=torch.int64, device="meta")
    with _Largest() as largest, torch.no_grad():
        model.forward(z, ids)
    return model.dim, largest.size / z.element_size() / rows
