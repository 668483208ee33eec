"""The processes of one job, which torchrun starts: each takes its share of the work.

A process that was started by itself is a job of one. No other module knows torch.distributed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lmpnn_kge.errors import RunError

if TYPE_CHECKING:
    from torch import Tensor

#: How long a process waits for the others, which may wait for the first one to sample queries.
#: torchrun sees much earlier that a process has ended, and ends the job.
PATIENCE = timedelta(days=1)


@dataclass(frozen=True)
class Processes:
    """This process and the number of processes in its job; the first one writes and prints."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0  # among those on this machine
    store: Any = field(default=None, repr=False, compare=False)  # of keys that all can see

    @property
    def first(self) -> bool:
        return self.rank == 0

    @property
    def alone(self) -> bool:
        return self.count == 1

    def takes(self, number: int) -> bool:
        """Whether this process does the piece of work with this number; exactly one does."""
        return number % self.count == self.rank

    def spans(self, length: int, parts: int) -> list[slice]:
        """The spans of a sequence that this process works on, if it is divided into parts.

        The number of parts is rounded up so that every process has equally many.
        """
        each = -(-parts // self.count)
        ends = [length * part // (each * self.count) for part in range(each * self.count + 1)]
        own = range(self.rank * each, (self.rank + 1) * each)
        return [slice(ends[part], ends[part + 1]) for part in own]

    def sum(self, values: Tensor) -> Tensor:
        """The sum of a vector over all processes, the same bits in each of them.

        Every process adds one piece of the vector, in pairs. A ring would be as fast, but the order
        in which it adds depends on the number of processes.
        """
        if self.alone:
            return values
        import torch
        import torch.distributed as dist

        pieces = torch.nn.functional.pad(values, (0, -len(values) % self.count))
        own, total = torch.empty_like(pieces), torch.empty_like(pieces)
        with _reaching_others():
            dist.all_to_all_single(own, pieces)
            dist.all_gather([*total.chunk(self.count)], sum_in_pairs(own.chunk(self.count)))
        return total[: len(values)]

    def concatenate(self, rows: Tensor) -> Tensor:
        """The rows of all processes, each with any number of them, in the order of the ranks."""
        if self.alone:
            return rows
        import torch
        import torch.distributed as dist

        own = torch.zeros(self.count, dtype=torch.int64)
        own[self.rank] = len(rows)
        counts = self.sum(own).tolist()
        padded = torch.cat([rows, rows.new_zeros(max(counts) - len(rows), *rows.shape[1:])])
        pieces = [torch.empty_like(padded) for _ in counts]
        with _reaching_others():
            dist.all_gather(pieces, padded)
        return torch.cat([piece[:count] for piece, count in zip(pieces, counts, strict=True)])

    def broadcast(self, content: bytes = b"") -> bytes:
        """What the first process gives."""
        if self.alone:
            return content
        import torch
        import torch.distributed as dist

        size = torch.tensor([len(content)])
        with _reaching_others():
            dist.broadcast(size, 0)
            buffer = torch.empty(int(size), dtype=torch.uint8)
            if self.first and content:
                buffer = torch.frombuffer(bytearray(content), dtype=torch.uint8)
            dist.broadcast(buffer, 0)
        return buffer.numpy().tobytes()

    def any(self, flag: bool = False) -> bool:
        """Whether the flag is set in any process; waits until all have come here."""
        if self.alone:
            return flag
        import torch
        import torch.distributed as dist

        seen = torch.tensor([int(flag)])
        with _reaching_others():
            dist.all_reduce(seen, dist.ReduceOp.MAX)
        return bool(seen)

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """The first process runs the block, then all others do: they find what it has written.

        Each is alone in the block and shares no work there.
        """
        if not self.first:
            self.any()
        token = _current.set(ALONE)
        try:
            yield
        finally:
            _current.reset(token)
        if self.first:
            self.any()

    def claims(self, key: str) -> bool:
        """Whether no other process of this job has claimed the key before."""
        try:
            return self.store is None or self.store.add(key, 1) == 1
        except RuntimeError:  # whoever kept the keys has ended
            return True


ALONE = Processes()

_current: ContextVar[Processes] = ContextVar("processes", default=ALONE)


def current() -> Processes:
    """The processes that share the work here; in a thread of its own, it is alone."""
    return _current.get()


def launched_rank() -> int | None:
    """The rank that a launcher gave this process, if it has started several."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1 and "MASTER_ADDR" in os.environ:
        return int(os.environ.get("RANK", 0))
    return None


@contextmanager
def job() -> Iterator[Processes]:
    """Join the other processes that a launcher has started; alone if there are none."""
    if launched_rank() is None:
        yield ALONE
        return
    import torch
    import torch.distributed as dist

    # An optimiser imports this module, whose functions have the group of all processes as a default
    # argument. If they get ours, its threads outlive it, and may abort Python when it ends.
    import torch.distributed.nn.functional
    from torch.distributed.rendezvous import rendezvous

    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    with_gpus = torch.cuda.is_available() and dist.is_nccl_available()
    if with_gpus:
        torch.cuda.set_device(local_rank % torch.cuda.device_count())
    with _reaching_others("the other processes of this job cannot be reached"):
        shared, rank, count = next(rendezvous("env://"))
        # The launcher keeps its store when it restarts the processes, with the addresses of those
        # that have ended: a new process would wait for them.
        attempt = f"{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)} of {count}"
        store = dist.distributed_c10d.PrefixStore(attempt, shared)
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if with_gpus else "gloo",
            store=store,
            rank=rank,
            world_size=count,
            timeout=PATIENCE,
        )
    token = _current.set(Processes(rank, count, local_rank, store))
    try:
        yield _current.get()
    finally:
        _current.reset(token)
        dist.destroy_process_group()


@contextmanager
def _reaching_others(problem: str = "another process of this job has ended") -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RunError(f"{problem}; --resume continues from what is saved") from error


def sum_in_pairs(values: Iterable[Tensor]) -> Tensor:
    """((a + b) + (c + d)) + …, keeping only as many sums as there are levels.

    If 2ⁿ neighbours at a time are added elsewhere before, the sum has the same bits.
    """
    sums: list[tuple[int, Tensor]] = []  # with the number of values in each, descending
    for value in values:
        size = 1
        while sums and sums[-1][0] == size:
            value = sums.pop()[1] + value
            size *= 2
        sums.append((size, value))
    total = sums.pop()[1]
    while sums:
        total = sums.pop()[1] + total
    return total
