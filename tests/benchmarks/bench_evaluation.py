"""Evaluation of the 14 types at FB15k-237's size, against the score product alone."""

import os
import sys
import time

import torch

from lmpnn_kge.cli.allocator import keep_freed_memory
from lmpnn_kge.device import choose_device, choose_precision
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.rank import BATCH, evaluate
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.settings.values import parse_settings

from .measure import peak_megabytes
from .workload import HARD, MANY_HARD, backbone, evaluation_queries

ROUNDS = 3


def main(settings: list[str]) -> None:
    keep_freed_memory(os.environ)  # as `evaluate` does
    config = load_config(settings=parse_settings(settings))
    dtype = choose_precision(config.precision, choose_device("cpu"))
    model = Lmpnn(backbone(), config, dtype=dtype)
    method = LmpnnMethod.of(model, config)
    rows, scores = torch.randn(BATCH, model.backbone.dim), torch.empty(BATCH, len(method.entities))
    for hard in (HARD, MANY_HARD):
        found = evaluation_queries(1000, hard=hard)
        count = sum(map(len, found.values()))
        products = sum(len(wire(q.pattern, config.union)) * len(q) for q in found.values())
        best = limit = float("inf")
        for _ in range(ROUNDS):
            start = time.process_time()
            evaluate(method, found)
            best = min(best, time.process_time() - start)
            start = time.process_time()
            for _ in range(products // BATCH):
                torch.mm(rows, method.entities.T, out=scores)
            taken = time.process_time() - start
            limit = min(limit, taken * products / (products // BATCH * BATCH))
        print(
            f"{hard:4} hard answers: {count / best:8,.0f} queries per second of a core, network in "
            f"{dtype}: {limit / best:4.0%} of the score product alone "
            f"({count / limit:,.0f})  peak {peak_megabytes():,.0f} MB"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
