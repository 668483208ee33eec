"""Evaluation of the 14 types, against the score product alone.

At FB15k-237's size with few and with many hard answers, and among a million entities with ten.
"""

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
from .workload import ENTITIES, HARD, MANY_HARD, backbone, evaluation_queries

ROUNDS = 3

#: Scores of a product that is compared with; a product of more rows is not faster.
PRODUCT = 2**27

#: Entities, queries per type, and the mean number of their hard answers.
SIZES = ((ENTITIES, 1000, HARD), (ENTITIES, 1000, MANY_HARD), (1_000_000, 20, 10))


def main(settings: list[str]) -> None:
    keep_freed_memory(os.environ)  # as `evaluate` does
    config = load_config(settings=parse_settings(settings))
    dtype = choose_precision(config.precision, choose_device("cpu"))
    for entities, per_type, hard in SIZES:
        model = Lmpnn(backbone(entities), config, dtype=dtype)
        method = LmpnnMethod.of(model, config)
        found = evaluation_queries(per_type, entities, hard=hard)
        count = sum(map(len, found.values()))
        products = sum(len(wire(q.pattern, config.union)) * len(q) for q in found.values())
        batch = min(BATCH, PRODUCT // entities)
        rows, scores = torch.randn(batch, model.backbone.dim), torch.empty(batch, entities)
        best = limit = float("inf")
        for _ in range(ROUNDS):
            start = time.process_time()
            evaluate(method, found)
            best = min(best, time.process_time() - start)
            start = time.process_time()
            for _ in range(products // batch):
                torch.mm(rows, method.entities.T, out=scores)
            taken = time.process_time() - start
            limit = min(limit, taken * products / (products // batch * batch))
        print(
            f"{entities:9,} entities, {hard:4} hard answers: {count / best:6,.0f} queries per "
            f"second of a core, network in {dtype}: {limit / best:4.0%} of the score product alone "
            f"({count / limit:,.0f})  peak {peak_megabytes():,.0f} MB"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
