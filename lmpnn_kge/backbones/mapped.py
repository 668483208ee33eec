"""Tables that stay in their file: its pages are mapped, read when they are needed, and let go.

A mapped table is a tensor like any other, of any floating point type, but nothing may write to it.
Its pages belong to the file, so that the system can take their memory back at any time. If another
program shortens a file while it is mapped, the system ends this process: only tables that are large
are mapped, and those that fit are copied into memory (see `Embedding.placed`).
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from lmpnn_kge.files import relative, write_parts

if TYPE_CHECKING:
    from torch import Tensor

#: Tables with fewer bytes than this are read into memory.
LARGE = 2**30

#: Bytes of a mapped table that are looked at together.
BLOCK = 2**25

#: Bytes that Linux reads ahead at once at most, on many machines; it ignores the rest of a request.
AHEAD = 2**17

Bytes = npt.NDArray[np.uint8]


class Mapped:
    """A file in the address space of this process."""

    def __init__(self, stream: IO[bytes]):
        self.pages = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        whole = np.frombuffer(self.pages, np.uint8)
        self.address, self.size = whole.ctypes.data, len(whole)
        # Rows are read in any order: a fault must not read their neighbours. `expect` reads ahead.
        self.advise("MADV_RANDOM", 0, self.size)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        # To numpy it is writable, because torch has no tensors that are not, and warns.
        data = (self.address, False)
        return {"version": 3, "typestr": "|u1", "shape": (self.size,), "data": data}

    def advise(self, option: str, start: int, count: int) -> None:
        """Advice to the system about some bytes; not every system takes it."""
        if hasattr(mmap, option):
            first = start - start % mmap.PAGESIZE
            self.pages.madvise(getattr(mmap, option), first, start + count - first)


#: The files that are mapped now, by their addresses.
_MAPPED: WeakValueDictionary[int, Mapped] = WeakValueDictionary()


def map_bytes(stream: IO[bytes], start: int, count: int) -> Bytes:
    """Some bytes of a file, which must have them."""
    mapped = Mapped(stream)
    if not 0 <= start <= start + count <= mapped.size:
        raise ValueError("it ends too early")
    _MAPPED[mapped.address] = mapped
    return np.asarray(mapped)[start : start + count]


def is_mapped(table: Tensor) -> bool:
    return _find(table) is not None


def _find(table: Tensor) -> Mapped | None:
    if not _MAPPED or table.device.type != "cpu":
        return None
    address = table.data_ptr()
    files = _MAPPED.values()
    return next((f for f in files if f.address <= address < f.address + f.size), None)


def expect(table: Tensor, rows: slice | npt.NDArray[np.int64]) -> None:
    """Let the system read some rows of a table [E, d] now, all of them at the same time."""
    mapped = _find(table)
    if mapped is None or table.stride(1) != 1:
        return
    first = table.data_ptr() - mapped.address
    step, width = (n * table.element_size() for n in (table.stride(0), table.shape[1]))
    if isinstance(rows, slice):
        end = first + (rows.stop - 1) * step + width
        for start in range(first + rows.start * step, end, AHEAD):
            mapped.advise("MADV_WILLNEED", start, min(AHEAD, end - start))
        return
    for start in (first + rows * step).tolist():
        mapped.advise("MADV_WILLNEED", start, width)


def release(table: Tensor) -> None:
    """Let go of the pages of a mapped file that this process has read; it can read them again."""
    if mapped := _find(table):
        mapped.advise("MADV_DONTNEED", 0, mapped.size)


def blocks(table: Tensor) -> Iterator[Tensor]:
    """A tensor in parts that are small enough for temporary ones of their size."""
    if not is_mapped(table):
        yield table
        return
    row = table[:1].numel() * table.element_size()
    yield from (table[span] for span in spans(table, max(1, BLOCK // row)))


def spans(table: Tensor, size: int) -> Iterator[slice]:
    """The rows of a table, so many at a time; of a mapped one, the next are read meanwhile."""
    starts = range(0, len(table), size)
    ranges = [slice(start, min(start + size, len(table))) for start in starts]
    for span, following in zip(ranges, [*ranges[1:], None], strict=True):
        if span is ranges[0]:
            expect(table, span)
        if following is not None:
            expect(table, following)
        yield span
        release(table)


def parts(content: Bytes) -> Iterator[Bytes]:
    """The same of bytes; the size of every type of number divides that of a part."""
    if content.nbytes < LARGE:
        yield content
        return
    import torch

    for part in blocks(torch.from_numpy(content)[:, None]):
        yield part.numpy().ravel()


def converted(
    source: str | Path, key: str, stored: Bytes, native: Callable[[Bytes], bytes]
) -> tuple[Bytes, list[str]]:
    """A table that cannot be mapped as it is stored, mapped in another file beside it; and a note.

    native makes numbers of this machine of a part. The other file is compared with the table every
    time, and written if it differs.
    """
    name = Path(source)
    file = name.with_name(f"{name.name}.{zlib.crc32(key.encode()):08x}.table")
    note = []
    if not _holds(file, map(native, parts(stored))):
        write_parts(map(native, parts(stored)), file)
        note = [f"a table that cannot be mapped in its file was copied, once, to {relative(file)}"]
    with file.open("rb") as stream:
        return map_bytes(stream, 0, stored.nbytes), note


def _holds(file: Path, content: Iterator[bytes]) -> bool:
    """Whether a file has exactly this content."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return all(stream.read(len(part)) == part for part in content) and not stream.read(1)
