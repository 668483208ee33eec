"""How much memory an engine may take."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lmpnn_kge.errors import QueryError, short

#: The share of the machine's memory that an engine takes if no other limit is set.
SHARE = 0.5

#: What is taken if the machine does not say how much memory it has, in bytes.
UNKNOWN = 4 * 10**9

#: The limit of a container, as Linux states it: bytes, or "max".
CONTAINER = Path("/sys/fs/cgroup/memory.max")

#: The largest number before a unit; with any unit, its bytes are a number that every engine takes.
LARGEST = 1e6

SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B)\s*", re.IGNORECASE)


def memory_limit(size: str | None = None) -> int:
    """The megabytes of a size such as 8GB, or else half of the machine's memory."""
    bytes_ = SHARE * machine_memory() if size is None else bytes_of(size)
    return max(1, round(bytes_ / 1e6))


def bytes_of(size: str) -> int:
    """The bytes of a size such as 8GB; QueryError if it is not one."""
    match = SIZE.fullmatch(size)
    if match is None or not 0 < float(match[1]) <= LARGEST:
        raise QueryError(f"{short(size)!r} is not a size of memory; give one such as 500MB or 8GB")
    base = 1024 if "i" in match[2].lower() else 1000
    return round(float(match[1]) * base ** ("KMGT".index(match[2][0].upper()) + 1))


def size_text(size: float) -> str:
    """A number of bytes for people, as `bytes_of` reads it."""
    unit, base = ("GB", 1e9) if size >= 1e9 else ("MB", 1e6)
    return f"{size / base:,.3g}{unit}" if size < 1000 * base else f"{size / base:,.0f}{unit}"


def machine_memory() -> int:
    """The bytes that this machine or container has."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return UNKNOWN
    try:
        return min(total, int(CONTAINER.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return total
