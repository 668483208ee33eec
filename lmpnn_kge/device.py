"""Where a run computes, and in which precision."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from lmpnn_kge.errors import RunError, choices, short

#: What this is for.
KNOWN = ("cpu", "cuda", "mps")

#: The largest block whose freeing teaches glibc, less some bytes of its own; see mallopt(3).
LARGEST_LEARNT = 2**25 - 2**13

#: bf16 must be that much faster than fp32 to be worth its rounding.
WORTH = 1.25


def choose_device(name: str = "auto") -> torch.device:
    """`auto` is the first of cuda, mps and cpu that this machine has."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
        if name == "cpu" and torch.backends.mps.is_available():
            name = "mps"
    try:
        if name.split(":")[0] not in KNOWN:
            raise RuntimeError(choices(name, ("auto", *KNOWN)))
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = short(str(error).split("\n")[0])
        raise RunError(f"device {name!r} cannot be used here: {reason}") from error
    if device.type == "cpu":
        _keep_freed_memory()
    return device


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """`auto` is bf16 where a matrix product in it is really faster, which is measured."""
    if name == "auto":
        fast, slow = (_seconds(dtype, device) for dtype in (torch.bfloat16, torch.float32))
        name = "bf16" if fast * WORTH < slow else "fp32"
    return torch.bfloat16 if name == "bf16" else torch.float32


def _seconds(dtype: torch.dtype, device: torch.device) -> float:
    """The best of a few matrix products, each waited for; large where launching one takes time."""
    size = 256 if device.type == "cpu" else 4096
    matrix = torch.ones(size, size, dtype=dtype, device=device)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        (matrix @ matrix)[0, 0].item()
        times.append(time.perf_counter() - start)
    return min(times)


def move(tensor: Tensor, device: torch.device) -> Tensor:
    """To a device; from pinned memory to a GPU, so that the copy runs beside the computation."""
    pin = device.type == "cuda"
    return (tensor.pin_memory() if pin else tensor).to(device, non_blocking=pin)


def describe_device(device: torch.device) -> str:
    """The device with its name or its number of threads."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({torch.get_num_threads()} threads)" if device.type == "cpu" else str(device)


@contextmanager
def in_one_order(device: torch.device) -> Iterator[None]:
    """Let the threads of a CPU add in one order, so that the same work gives the same bits.

    An operation that cannot is warned of. Other devices are left alone: theirs slow them down.
    """
    if device.type != "cpu":
        yield
        return
    chosen = torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    memory.fill_uninitialized_memory = False  # nothing reads it
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(chosen, warn_only=warned)
        memory.fill_uninitialized_memory = filled


def _keep_freed_memory() -> None:
    """Let a CPU's tensors use the memory of those that are gone, not fresh pages every time.

    glibc gives freed memory back beyond twice the largest block it has seen freed so far. This
    frees one of the largest size that it learns from.
    """
    torch.empty(LARGEST_LEARNT, dtype=torch.uint8)
