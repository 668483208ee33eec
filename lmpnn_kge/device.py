"""The device that computes, and its precision."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from lmpnn_kge.errors import RunError, choices, short
from lmpnn_kge.processes import current
from lmpnn_kge.work.turns import AT_ONCE, turn

#: Kinds of devices that are supported.
KNOWN = ("cpu", "cuda", "mps")

#: For glibc: the freed bytes that it keeps (M_TRIM_THRESHOLD), and the size from which it returns
#: a block at once (M_MMAP_THRESHOLD, at its largest).
MALLOC = {-1: 2**30, -3: 2**25}

#: Products of each type that are timed to choose a precision.
ROUNDS = 20

#: How much faster than fp32 bf16 must be to be worth its rounding.
WORTH = 1.25


def choose_device(name: str = "auto") -> torch.device:
    """`auto` is the first of cuda, mps and cpu that this machine has.

    Each process of a job has a GPU of its own. On a CPU this also lets freed memory be reused, see
    `_keep_freed_memory`.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
        if name == "cpu" and torch.backends.mps.is_available():
            name = "mps"
    processes = current()
    if name.startswith("cuda:") and not processes.alone:
        raise RunError(
            f"device {name!r} is one GPU, but {processes.count} processes need one each; use cuda"
        )
    if name == "cuda" and not processes.alone:
        name = f"cuda:{processes.local_rank % max(1, torch.cuda.device_count())}"
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


@cache
def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """`auto` is bf16 if a matrix product in bf16 is measured to be faster, else fp32.

    It is measured once in a process, so that the networks of a table have one precision.
    """
    if name == "auto":
        fast, slow = _fastest_products((torch.bfloat16, torch.float32), device)
        name = "bf16" if fast * WORTH < slow else "fp32"
    return torch.bfloat16 if name == "bf16" else torch.float32


def _fastest_products(dtypes: Sequence[torch.dtype], device: torch.device) -> list[float]:
    """The seconds of the fastest of some matrix products, for each type.

    The types take turns, so that other work on the machine disturbs them alike. The products are
    large where launching one takes time.
    """
    size = 512 if device.type == "cpu" else 4096
    matrices = [torch.ones(size, size, dtype=dtype, device=device) for dtype in dtypes]
    fastest = [float("inf")] * len(dtypes)
    for _ in range(ROUNDS):
        for index, matrix in enumerate(matrices):
            start = time.perf_counter()
            (matrix @ matrix)[0, 0].item()
            fastest[index] = min(fastest[index], time.perf_counter() - start)
    return fastest


def move(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy to a device; to a GPU from pinned memory, so that the copy overlaps the computation."""
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

    torch warns about an operation that cannot. Other devices stay as they are, because this would
    slow them down.
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
    """Let new tensors reuse the memory of freed ones, instead of fresh pages every time.

    By itself, glibc returns to the system what a training step frees at its end. The settings are
    those of mallopt(3); other C libraries have none and are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        for parameter, size in MALLOC.items():
            mallopt(parameter, size)


def moved_fields(batch: Any, device: torch.device) -> dict[str, Any]:
    """The tensors among the fields of a dataclass, on a device."""
    fields = vars(batch).items()
    return {name: move(value, device) for name, value in fields if isinstance(value, Tensor)}


@contextmanager
def computing() -> Iterator[None]:
    """A turn to compute; alone, if two such threads would use more threads than there are cores."""
    with turn(alone=AT_ONCE * torch.get_num_threads() > (os.cpu_count() or 1)):
        yield
