"""How much freed memory a command keeps for its next step."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

#: glibc's numbers of its settings, from malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3

#: Blocks up to this size, the largest that glibc allows, are taken from memory that was freed, and
#: up to that much of it is kept. By itself glibc returns it to the system after every step, and
#: each page that comes back costs an interrupt: docs/results.md has figures.
LARGEST_BLOCK, KEPT = 2**25, 2**28

#: What a user may have set instead.
ALTERNATIVES = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory(environment: Mapping[str, str]) -> bool:
    """Set it for this process; False if the user did, or if the C library has no such setting."""
    if any(name in environment for name in ALTERNATIVES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not Linux, or a C library other than glibc
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_BLOCK) and mallopt(TRIM_THRESHOLD, KEPT))
