"""`make gpu-check`: whether a GPU gives the answers of the CPU, how fast, and in how much memory.

    python -m tests.gpu_check                       the GPU of this machine
    python -m tests.gpu_check --device cuda:1       another one
    python -m tests.gpu_check --device cpu --quick  the CPU against itself, to test this check

It takes about two minutes, and exits with code 1 if an answer differs, or 2 without a GPU.
"""

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge import backbone_class
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.device import choose_device, choose_precision, describe_device
from lmpnn_kge.errors import RunError
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.rank import rank_types
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.logic import Logic
from lmpnn_kge.search.search import Search
from lmpnn_kge.search.solve import Solver
from lmpnn_kge.search.truth import EdgeTruth, Weights
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.lmpnn import LmpnnTask
from lmpnn_kge.training.loop import Loop

from .benchmarks.measure import peak_megabytes
from .benchmarks.workload import evaluation_queries, training_queries

BACKBONES = ("complex", "distmult", "rescal", "conve", "transe", "rotate")

#: The largest mean difference of answers, relative to their mean size. Single ones may differ more:
#: rounding changes the rank of an entity whose score is next to another.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Size:
    """Of the graph, the embedding, the network and the work."""

    entities: int
    relations: int
    dim: int
    settings: Mapping[str, int]
    queries: int  # of each type

    def backbone(self, name: str) -> Backbone:
        kind = backbone_class(name)
        dim, reciprocal = kind.entity_width(self.dim), kind.inverse_formula is None
        return kind.random(self.entities, self.relations, dim, reciprocal=reciprocal)

    def task(self, name: str, device: torch.device, dtype: torch.dtype, **settings) -> LmpnnTask:
        config = load_config(settings={**self.settings, **settings})
        model = Lmpnn(self.backbone(name), config, dtype=dtype).on(device)
        train = training_queries(self.queries, self.entities, self.relations)
        return LmpnnTask(model, config, train, {}, dtype)


SMALL = Size(150, 6, 16, {"hidden": 64, "batch_size": 32, "negative_count": 64}, 32)
FB15K_237 = Size(14_541, 237, 128, {}, 2048)


def answers(name: str, device: torch.device) -> dict[str, Tensor]:
    """What a backbone and a network on it answer, in fp32, on the CPU."""
    task = SMALL.task(name, device, torch.float32)
    losses = [task.loss(part)[0] for parts in task.input.epoch(0) for part in parts]
    torch.stack(losses).sum().backward()
    gradients = [weight.grad.flatten() for weight in task.model.parameters()]
    queries = evaluation_queries(4, SMALL.entities, SMALL.relations)
    ranks = rank_types(task.method, queries)
    triples = np.random.default_rng(0).integers(
        [SMALL.entities, SMALL.relations, SMALL.entities], size=(600, 3)
    )
    facts = Facts.of(triples, SMALL.entities, SMALL.relations).to(device)
    weights = Weights.uniform(1.0, 0.0, SMALL.relations).to(device)
    truth = EdgeTruth(task.model.backbone, facts, weights, certain=True)
    search = Search(Solver(truth, Logic("product", "max"), beam=16, guesses=4, tries=4))
    forward, searched = [], []
    for group in queries.values():
        columns = [
            torch.from_numpy(column.astype(np.int64)).to(device)
            for column in (group.constants, group.relations)
        ]
        forward.append(task.method.embed(group.pattern, *columns).flatten())
        searched.append(search.answer(group.pattern, *columns)(slice(None)).exp().flatten())
    found = {
        "forward": torch.cat(forward),
        "loss": torch.stack(losses),
        "gradients": torch.cat(gradients),
        "ranking": torch.cat([torch.from_numpy(1 / ranks[kind][0]) for kind in ranks]),
        "search": torch.cat(searched),
    }
    return {kind: tensor.detach().cpu().double() for kind, tensor in found.items()}


def compare(device: torch.device) -> bool:
    """Print the differences from the CPU; whether all are within the tolerance."""
    same, head = True, ("forward", "loss", "gradients", "ranking", "search")
    print(f"{'difference':<12}" + "".join(f"{kind:>12}" for kind in head))
    for name in BACKBONES:
        found, expected = (answers(name, place) for place in (device, torch.device("cpu")))
        cells = []
        for kind in head:
            ours, right = found[kind], expected[kind]
            difference = ((ours - right).abs().mean() / right.abs().mean()).item()
            agrees = difference <= TOLERANCE  # a difference that is not a number does not
            same &= agrees
            cells.append(f"{difference:.1e}" + ("" if agrees else " !"))
        print(f"{name:<12}" + "".join(f"{cell:>12}" for cell in cells), flush=True)
    return same


def measure(device: torch.device, size: Size) -> None:
    """Print speed and memory: fp32 and the precision that would be chosen, compiled and not."""
    print(f"\n{describe_device(device):<36}{'training':>12}{'evaluation':>12}{'memory':>12}")
    chosen = choose_precision("auto", device)
    ways = {(torch.float32, False): None, (chosen, False): None}
    if device.type == "cuda":
        ways |= {(dtype, True): None for dtype, _ in ways}
    queries = evaluation_queries(size.queries // 2, size.entities, size.relations)
    for dtype, compiled in ways:
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        task = size.task("complex", device, dtype, compile=compiled)
        loop = Loop(task, RunFolder(Path("nowhere"), task.settings, None))
        training = evaluation = 0.0
        for _ in range(2):  # the first time warms up, and compiles
            training = _rate(device, lambda loop=loop: _train(loop))
            evaluation = _rate(device, lambda method=task.method: _evaluate(method, queries))
        used = peak_megabytes()
        if device.type == "cuda":
            used = torch.cuda.max_memory_allocated(device) / 2**20
        name = f"{str(dtype).removeprefix('torch.')}{', compiled' if compiled else ''}"
        print(f"{name:<36}{training:>8,.0f} q/s{evaluation:>8,.0f} q/s{used:>9,.0f} MB", flush=True)


def _train(loop: Loop) -> int:
    return sum(
        len(part)
        for parts in loop.task.batches(0, 0)
        if loop.step(parts) is not None
        for part in parts
    )


def _evaluate(method: LmpnnMethod, queries) -> int:
    rank_types(method, queries)
    return sum(map(len, queries.values()))


def _rate(device: torch.device, work) -> float:
    """What is done in a second, when the device has finished it."""
    start = time.perf_counter()
    done = work()
    if device.type != "cpu":
        torch.zeros(1, device=device).item()
    return done / (time.perf_counter() - start)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", help="cuda, cuda:1, mps or cpu")
    parser.add_argument("--quick", action="store_true", help="measure at a small size")
    options = parser.parse_args(arguments)
    try:
        device = choose_device(options.device)
    except RunError as error:
        print(error)
        return 2
    if device.type == "cpu" and options.device == "auto":
        print("no GPU was found; --device cpu compares the CPU with itself")
        return 2
    same = compare(device)
    measure(device, SMALL if options.quick else FB15K_237)
    print(f"\nthe answers of {device} and the CPU {'agree' if same else 'differ (!)'}")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
