"""The two layouts of torch's files: a zip archive, and in old versions a row of pickles.

An archive holds `NAME/data.pkl` and a member `NAME/data/KEY` for the numbers of every storage,
none of them compressed. An old file has five pickles (a mark, a version, the machine, the content,
the keys of the storages) and then, for every key, the count of its numbers and these numbers.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from functools import partial
from typing import IO

import numpy as np
from torch import Tensor

from lmpnn_kge.backbones import mapped
from lmpnn_kge.backbones.libkge.stored import NATIVE, ByteOrder, Storage
from lmpnn_kge.backbones.mapped import Bytes

ZIP, PICKLE = b"PK\x03\x04", b"\x80"


class SavedFile(ABC):
    """An open file that torch saved. Storages are read once, from the stream that was checked."""

    byte_order: ByteOrder = "<"

    def __init__(self, stream: IO[bytes]):
        self.stream = stream
        self.size = os.fstat(stream.fileno()).st_size
        self.notes: list[str] = []
        self._tensors: dict[Storage, Tensor] = {}

    @abstractmethod
    def pickle(self) -> tuple[IO[bytes], int]:
        """The pickles as a stream, and its length."""

    @abstractmethod
    def stored(self, storage: Storage) -> Bytes:
        """The bytes of a storage; ValueError if the file does not have them."""

    def read(self, storage: Storage) -> Tensor:
        if storage not in self._tensors:
            stored, order = self.stored(storage), self.byte_order
            if storage.nbytes >= mapped.LARGE and not storage.is_native(stored, order):
                native = partial(storage.native, order)
                stored, note = mapped.converted(self.stream.name, storage.key, stored, native)
                order, self.notes = NATIVE, [*self.notes, *note]
            self._tensors[storage] = storage.tensor(stored, order)
        return self._tensors[storage]

    def part(self, start: int, count: int) -> Bytes:
        """Some bytes of the file, which must have them before memory is taken for them."""
        if not 0 <= start <= start + count <= self.size:
            raise ValueError("it ends too early: a tensor claims more numbers than the file has")
        if count >= mapped.LARGE:
            return mapped.map_bytes(self.stream, start, count)
        self.stream.seek(start)
        part = np.fromfile(self.stream, np.uint8, count)
        if len(part) != count:
            raise ValueError("it ends too early")
        return part


class ZipFile(SavedFile):
    """A zip archive with one pickle."""

    def __init__(self, stream: IO[bytes]):
        super().__init__(stream)
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
        self.members = {member.filename: member for member in members}
        if len(self.members) != len(members):
            raise ValueError("it is a zip archive that torch did not write: names occur twice")
        if sum(member.file_size for member in members) > self.size:
            raise ValueError("it would unpack to more bytes than its own size")
        pickles = [name for name in self.members if name.endswith("/data.pkl")]
        if len(pickles) != 1 or pickles[0].count("/") != 1:
            raise ValueError("it is a zip archive that torch did not write")
        self.top = pickles[0].partition("/")[0]
        if f"{self.top}/byteorder" in self.members:
            match self._member("byteorder").tobytes():
                case b"big":
                    self.byte_order = ">"
                case other if other != b"little":
                    raise ValueError("it does not say in which order its bytes are")

    def pickle(self) -> tuple[IO[bytes], int]:
        content = self._member("data.pkl").tobytes()
        return io.BytesIO(content), len(content)

    def stored(self, storage: Storage) -> Bytes:
        stored = self._member(f"data/{storage.key}")
        if len(stored) < storage.nbytes:
            raise ValueError("a tensor claims more numbers than the file has")
        return stored[: storage.nbytes]

    def _member(self, name: str) -> Bytes:
        """The bytes of a member, found where its directory entry and its own header say."""
        full = f"{self.top}/{name}"
        if full not in self.members:
            raise ValueError(f"it is a zip archive without {name}")
        entry = self.members[full]
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise ValueError(f"its member {name} is compressed, which torch never does")
        header = self.part(entry.header_offset, 30).tobytes()
        signature, name_length, extra_length = struct.unpack("<4s22xHH", header)
        start = entry.header_offset + 30
        own_name = self.part(start, name_length).tobytes()
        if signature != ZIP or own_name != full.encode():
            raise ValueError(f"its member {name} is not where its directory says")
        content = self.part(start + name_length + extra_length, entry.file_size)
        if entry.CRC and _checksum(content) != entry.CRC:  # torch can be told to leave it at 0
            raise ValueError(f"its member {name} is damaged: its checksum differs")
        return content


class PickleFile(SavedFile):
    """A row of pickles and then the numbers."""

    def __init__(self, stream: IO[bytes]):
        super().__init__(stream)
        self.starts: dict[Storage, int] = {}

    def pickle(self) -> tuple[IO[bytes], int]:
        self.stream.seek(0)
        return self.stream, self.size

    def locate(self, storages: list[Storage]) -> None:
        """Find the numbers of all storages, in the order of the file, behind the last pickle."""
        start = self.stream.tell()
        for storage in storages:
            (count,) = struct.unpack("<q", self.part(start, 8).tobytes())
            if count != storage.count:
                raise ValueError("a tensor claims more numbers than the file has")
            self.starts[storage] = start + 8
            start += 8 + storage.nbytes
        if start != self.size:
            raise ValueError("its length does not fit its tensors")

    def stored(self, storage: Storage) -> Bytes:
        if storage not in self.starts:
            raise ValueError("it lacks the numbers of a tensor")
        return self.part(self.starts[storage], storage.nbytes)


def open_saved(stream: IO[bytes]) -> ZipFile | PickleFile:
    """The layout of an open file, by its first bytes."""
    start = stream.read(4)
    stream.seek(0)
    if start == ZIP:
        return ZipFile(stream)
    if start.startswith(PICKLE):
        return PickleFile(stream)
    raise ValueError("it begins unlike every file that torch writes")


def _checksum(content: Bytes) -> int:
    checksum = 0
    for part in mapped.parts(content):
        checksum = zlib.crc32(part.data, checksum)
    return checksum
