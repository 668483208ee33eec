"""CQD(E) at 1,000 steps and CQD-Beam against LMPNN, on the same queries at FB15k-237's size."""

import sys

from lmpnn_kge.device import choose_device, choose_precision
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods.cqd import Cqd, CqdBeam
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.method import Method
from lmpnn_kge.methods.rank import BATCH
from lmpnn_kge.settings.files import load_config, load_settings
from lmpnn_kge.settings.kinds import CqdSettings
from lmpnn_kge.settings.values import parse_settings

from .measure import query_rates
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
    rates = query_rates(methods, found, warm={"LMPNN"})
    for name in ("CQD(E)", "CQD-Beam"):
        print(f"LMPNN is {rates['LMPNN'] / rates[name]:,.0f} × as fast as {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
