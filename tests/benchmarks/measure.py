"""Time and memory of one call. Nothing is asserted: machines differ, ratios less so."""

import resource
import time
from collections.abc import Callable, Container, Mapping
from functools import partial

from lmpnn_kge.methods.method import Method
from lmpnn_kge.methods.rank import rank_queries
from lmpnn_kge.queries.columns import Queries


def seconds(call: Callable[[], object], repeat: int = 3) -> float:
    """The best of a few runs, after one to warm up."""
    call()
    return min(_once(call) for _ in range(repeat))


def _once(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def query_rates(
    methods: Mapping[str, Method], queries: Mapping[str, Queries], warm: Container[str] = ()
) -> dict[str, float]:
    """Print the queries per second of each method by type, and return those over all types.

    A method in `warm` ranks a type once before it is timed.
    """
    taken = dict.fromkeys(methods, 0.0)
    print("queries/s " + "".join(f"{name:>12}" for name in methods))
    for kind, group in queries.items():
        speeds = []
        for name, method in methods.items():
            if name in warm:
                rank_queries(method, group)
            elapsed = _once(partial(rank_queries, method, group))
            taken[name] += elapsed / len(group)
            speeds.append(len(group) / elapsed)
        print(f"{kind:<10}" + "".join(f"{speed:12,.0f}" for speed in speeds), flush=True)
    rates = {name: len(queries) / elapsed for name, elapsed in taken.items()}
    print("all types " + "".join(f"{rate:12,.0f}" for rate in rates.values()))
    return rates


def peak_megabytes() -> float:
    """The most memory this process has ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
