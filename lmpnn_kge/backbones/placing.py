"""Entity tables that do not fit on a device: it gets some rows of them, or a block at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lmpnn_kge.backbones.kernels import take_rows
from lmpnn_kge.backbones.mapped import expect, release, spans
from lmpnn_kge.device import move
from lmpnn_kge.graph.memory import SHARE, bytes_of, machine_memory

#: What a device holds of a table that fits, in numbers of single precision for each of the table:
#: the table, a copy with rows of length 1, and in training another one in half precision.
COPIES = 2.5

#: Blocks that a device holds at once: the one that is scored, as it was read and with rows of
#: length 1, and the next one. One more is for temporary tensors.
BLOCKS = 4

#: The most rows of a block: as many as keep a CPU's caches and threads busy, more on a GPU.
CPU_ROWS, ROWS = 2**14, 2**17

#: A block has a multiple of this many rows, if it can: products treat those beyond it in another
#: way, which may round equal rows differently.
EVEN = 64

#: Bytes of a number on the device.
SINGLE = 4


def table_limit(size: str | None, device: torch.device) -> int:
    """The bytes of an entity table that a device may hold: a size such as 8GB, or half of all."""
    if size is not None:
        return bytes_of(size)
    if device.type == "cuda":
        return int(SHARE * torch.cuda.get_device_properties(device).total_memory)
    return int(SHARE * machine_memory())


def fits(table: Tensor, limit: int) -> bool:
    return COPIES * SINGLE * table.numel() <= limit


def block_rows(table: Tensor, device: torch.device, limit: int) -> int:
    """The rows of a block, of which a device can hold several."""
    room = limit // (BLOCKS * SINGLE * table.shape[1])
    rows = max(1, min(most_rows(device), len(table), room))
    return rows - rows % EVEN or rows


def most_rows(device: torch.device) -> int:
    return CPU_ROWS if device.type == "cpu" else ROWS


def fetch(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of a table in the host's memory, [n, d] in single precision, by ids [n] there."""
    expect(table, ids.numpy())
    rows = take_rows(table, ids).float()
    release(table)
    return rows


def stream(table: Tensor, size: int, device: torch.device) -> Iterator[tuple[slice, Tensor]]:
    """A table in the host's memory as blocks on a device: which rows, and their numbers.

    The system reads the next block from the file, and a GPU gets it, while one is worked on.
    """
    for span in spans(table, size):
        yield span, move(table[span], device).float()


def loaded(table: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """All of a table on a device."""
    whole = torch.empty(table.shape, dtype=dtype, device=device)
    for span, rows in stream(table, CPU_ROWS, device):
        whole[span] = rows
    return whole
