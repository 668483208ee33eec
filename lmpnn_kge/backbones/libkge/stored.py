"""Tensors in a file that torch saved: described first, checked, and then read once."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.backbones.mapped import Bytes

#: The numbers in a file, by the name of their type in torch; numpy has no bfloat16.
TYPES = {
    "Double": ("f8", torch.float64),
    "Float": ("f4", torch.float32),
    "Half": ("f2", torch.float16),
    "BFloat16": ("i2", torch.bfloat16),
    "Long": ("i8", torch.int64),
    "Int": ("i4", torch.int32),
    "Short": ("i2", torch.int16),
    "Char": ("i1", torch.int8),
    "Byte": ("u1", torch.uint8),
    "Bool": ("u1", torch.bool),
}

#: More dimensions than any model has.
MAX_DIMENSIONS = 16

ByteOrder = Literal["<", ">"]
NATIVE: ByteOrder = "<" if sys.byteorder == "little" else ">"


@dataclass(frozen=True)
class Storage:
    """A row of numbers in a file, which tensors show in parts."""

    key: str
    type_: str
    count: int

    @property
    def nbytes(self) -> int:
        return self.count * np.dtype(TYPES[self.type_][0]).itemsize

    def is_native(self, stored: Bytes, byte_order: ByteOrder) -> bool:
        """Whether these bytes are numbers of this machine, as they are and where they are."""
        size = np.dtype(TYPES[self.type_][0]).itemsize
        return (byte_order == NATIVE or size == 1) and not stored.ctypes.data % size

    def native(self, byte_order: ByteOrder, stored: Bytes) -> bytes:
        """The bytes of the same numbers in this machine's order."""
        dtype = np.dtype(TYPES[self.type_][0])
        return stored.view(dtype.newbyteorder(byte_order)).astype(dtype).tobytes()

    def tensor(self, stored: Bytes, byte_order: ByteOrder) -> Tensor:
        """The numbers of these bytes."""
        code, dtype = TYPES[self.type_]
        numbers = stored.view(np.dtype(code).newbyteorder(byte_order))
        tensor = torch.from_numpy(np.ascontiguousarray(numbers, np.dtype(code)))
        if dtype is torch.bfloat16:
            return tensor.view(dtype)
        return tensor != 0 if dtype is torch.bool else tensor


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor as a pickle describes it; nothing of it is read or checked yet."""

    storage: Storage
    offset: Any
    shape: Any
    stride: Any

    def load(self, read: Callable[[Storage], Tensor]) -> Tensor:
        """The tensor; ValueError if its description cannot be true."""
        sizes = (self.shape, self.stride)
        if not all(type(size) is tuple and len(size) <= MAX_DIMENSIONS for size in sizes):
            raise ValueError("a tensor has an impossible shape")
        numbers = (self.offset, *self.shape, *self.stride)
        if not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
            raise ValueError("a tensor has an impossible shape")
        if len(self.shape) != len(self.stride):
            raise ValueError("a tensor has an impossible shape")
        count = math.prod(self.shape)
        last = sum((n - 1) * step for n, step in zip(self.shape, self.stride, strict=True))
        # A view may show a few numbers many times, and copying it would fill the memory.
        if count > self.storage.count or (count and self.offset + last >= self.storage.count):
            raise ValueError("a tensor claims more numbers than the file has")
        if not count:
            return torch.empty([min(n, 1 << 30) for n in self.shape])
        return read(self.storage).as_strided(self.shape, self.stride, self.offset)
