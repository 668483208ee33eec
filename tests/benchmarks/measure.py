"""Time and memory of one call. Nothing is asserted: machines differ, ratios less so."""

import resource
import time
from collections.abc import Callable


def seconds(call: Callable[[], object], repeat: int = 3) -> float:
    """The best of a few runs, after one to warm up."""
    call()
    return min(_once(call) for _ in range(repeat))


def _once(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peak_megabytes() -> float:
    """The most memory this process has ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
