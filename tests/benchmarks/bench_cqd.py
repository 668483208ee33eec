"""CQD(E) at 1,000 steps and CQD-Beam against LMPNN, on the same queries at FB15k-237's size."""

import sys
import time

from lmpnn_kge.device import choose_device, choose_precision
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods.cqd import Cqd, CqdBeam
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.method import Method
from lmpnn_kge.methods.rank import BATCH, rank_queries
from lmpnn_kge.settings.files import load_config, load_settings
from lmpnn_kge.settings.kinds import CqdSettings
from lmpnn_kge.settings.values import parse_settings

from .workload import backbone, evaluation_queries

#: A batch of each type: all methods work on a batch at once.
QUERIES = BATCH


def main(settings: list[str]) -> None:
    config = load_config("small")
    dtype = choose_precision(config.precision, choose_device("cpu"))
    table = backbone()
    decomposition = load_settings(CqdSettings, ["default"], parse_settings(settings))
    methods: dict[str, Method] = {
        "LMPNN": LmpnnMethod.of(Lmpnn(table, config, dtype=dtype), config),
        "CQD(E)": Cqd.of(table, decomposition),
        "CQD-Beam": CqdBeam.of(table, decomposition),
    }
    found = evaluation_queries(QUERIES)
    taken = dict.fromkeys(methods, 0.0)
    print("queries/s " + "".join(f"{name:>12}" for name in methods))
    for kind, queries in found.items():
        speeds = []
        for name, method in methods.items():
            if name == "LMPNN":
                rank_queries(method, queries)  # to warm up
            start = time.perf_counter()
            rank_queries(method, queries)
            seconds = time.perf_counter() - start
            taken[name] += seconds / len(queries)
            speeds.append(len(queries) / seconds)
        print(f"{kind:<10}" + "".join(f"{speed:12,.0f}" for speed in speeds), flush=True)
    rates = {name: len(found) / seconds for name, seconds in taken.items()}
    print("all types " + "".join(f"{rate:12,.0f}" for rate in rates.values()))
    for name in ("CQD(E)", "CQD-Beam"):
        print(f"LMPNN is {rates['LMPNN'] / rates[name]:,.0f} × as fast as {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
