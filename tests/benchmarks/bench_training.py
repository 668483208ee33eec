"""Training at FB15k-237's size with the default settings, against its matrix products alone.

Both take turns after every step, and CPU time is measured: the ratio hardly depends on what else
the machine does. Batches are drawn before; a training draws them in a thread, at 0.3 µs a query.

The products are all six of the MLP for each row, although training leaves out one, the gradient of
the row, if nothing is learnt from it. Of the products that are left, it reaches 3 or 4 points less.
"""

import os
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from lmpnn_kge.cli.allocator import keep_freed_memory
from lmpnn_kge.device import choose_device, choose_precision
from lmpnn_kge.lmpnn.batches import Batch
from lmpnn_kge.lmpnn.mlp import CPU_CHUNK
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.settings.values import parse_settings
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.lmpnn import LmpnnTask
from lmpnn_kge.training.loop import Loop

from .measure import peak_megabytes
from .workload import backbone, training_queries

ROUNDS = 3


class Products:
    """What a step multiplies, forward and backward, and nothing else."""

    def __init__(self, dim: int, config: TrainSettings, dtype: torch.dtype):
        def rows(count: int, width: int) -> Tensor:
            return torch.randn(count, width).to(dtype)

        size, self.chunk = config.batch_size, max(1, CPU_CHUNK // config.hidden)
        self.first, self.second = rows(config.hidden, dim), rows(dim, config.hidden)
        self.first_grad, self.second_grad = self.first.clone(), self.second.clone()
        self.x, self.y = rows(self.chunk, dim), rows(self.chunk, dim)
        self.h, self.g = rows(self.chunk, config.hidden), rows(self.chunk, config.hidden)
        self.z, self.noise = rows(size, dim), rows(config.negative_count, dim)
        self.logits = rows(size, config.negative_count)

    def of(self, batch: Batch, config: TrainSettings, relations: int) -> None:
        """Those of a step with this batch."""
        for wiring in wire(batch.pattern, config.union, 0, config.constants):
            for layer in wiring.layers:
                tables = len(layer.hoistable) * min(len(batch), relations)
                self.mlp((len(layer.states) - len(layer.hoistable)) * len(batch) + tables)
        self.loss()

    def mlp(self, count: int) -> None:
        for start in range(0, count, self.chunk):
            n = min(self.chunk, count - start)
            x, y, h, g = self.x[:n], self.y[:n], self.h[:n], self.g[:n]
            torch.mm(x, self.first.T, out=h)
            torch.mm(h, self.second.T, out=y)
            torch.mm(x, self.second, out=g)
            torch.mm(x.T, h, out=self.second_grad)
            torch.mm(g.T, x, out=self.first_grad)
            torch.mm(g, self.first, out=y)

    def loss(self) -> None:
        torch.mm(self.z, self.noise.T, out=self.logits)
        torch.mm(self.logits, self.noise, out=self.z)


def main(settings: list[str]) -> None:
    keep_freed_memory(os.environ)  # as `train` does
    config = load_config(settings=parse_settings(settings))
    dtype = choose_precision(config.precision, choose_device("cpu"))
    model = Lmpnn(backbone(), config, dtype=dtype)
    found = training_queries(10 * config.batch_size)
    task = LmpnnTask(model, config, found, {}, dtype)
    loop = Loop(task, RunFolder(Path("nowhere"), config, None))
    batches = task.input
    products = Products(model.backbone.dim, config, dtype)
    spent = limit = 0.0
    queries = 0
    for epoch in range(1 + ROUNDS):
        for parts in batches.epoch(epoch):
            start = time.process_time()
            loop.step(parts)
            stepped = time.process_time()
            products.of(parts[0], config, 2 * model.backbone.num_relations)
            if epoch:  # the first one warms up
                queries += len(parts[0])
                spent += stepped - start
                limit += time.process_time() - stepped
    print(
        f"{queries / spent:8,.0f} queries per second of a core in {dtype}, {limit / spent:4.0%} "
        f"of the products alone ({queries / limit:,.0f})  peak {peak_megabytes():,.0f} MB"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
