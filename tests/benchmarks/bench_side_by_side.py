"""Training alone and beside another one on the same cores, with several ways for threads to wait.

The ways take turns, so that other work on the machine disturbs them alike.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from lmpnn_kge.cli.threads import ALTERNATIVES, SPINS

#: What to set in the environment: nothing, what our commands set, and to sleep at once.
WAYS = {"torch": {}, "lmpnn-kge": SPINS, "passive": {"OMP_WAIT_POLICY": "passive"}}

ROUNDS, SECONDS = 5, 2.0


class Trainer:
    """A process that trains when it is asked to."""

    def __init__(self, way: dict[str, str]):
        own = {name: value for name, value in os.environ.items() if name not in ALTERNATIVES}
        self.process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, "train"],
            env=own | way,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Linux divides a machine fairly among sessions
        )
        self.rate()  # when it is ready

    def begin(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def rate(self) -> float:
        return float(self.process.stdout.readline())


def train() -> None:
    """For every line on standard input, train for a while and print the queries per second."""
    import torch

    from lmpnn_kge.device import choose_device
    from lmpnn_kge.lmpnn.network import Lmpnn
    from lmpnn_kge.settings.files import load_config
    from lmpnn_kge.training.folder import RunFolder
    from lmpnn_kge.training.lmpnn import LmpnnTask
    from lmpnn_kge.training.loop import Loop

    from .workload import backbone, training_queries

    config = load_config("small", {"precision": "fp32"})
    choose_device("cpu")
    queries = training_queries(4 * config.batch_size)
    task = LmpnnTask(Lmpnn(backbone(), config), config, queries, {}, torch.float32)
    loop = Loop(task, RunFolder(Path("nowhere"), config, None))
    batches = list(task.input.epoch(0))
    loop.step(batches[0])
    print(0, flush=True)
    for _ in sys.stdin:
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < SECONDS:
            batch = batches[loop.state.step % len(batches)]
            loop.step(batch)
            done += len(batch[0])
        print(done / (time.perf_counter() - start), flush=True)


def main() -> None:
    trainers = {name: [Trainer(way) for _ in range(2)] for name, way in WAYS.items()}
    alone, beside = ({name: [] for name in WAYS} for _ in range(2))
    for _ in range(ROUNDS):
        for name, pair in trainers.items():
            for rates, group in ((alone, pair[:1]), (beside, pair)):
                for trainer in group:
                    trainer.begin()
                rates[name] += [trainer.rate() for trainer in group]
    for name, pair in trainers.items():
        one, each = median(alone[name]), median(beside[name])
        print(
            f"{name:10} {one:8,.0f} queries/s alone, {each:8,.0f} each of two: "
            f"{each / one:4.0%}  ({median(alone[name]) / median(alone['torch']):4.0%} of torch's "
            "own way alone)"
        )
        for trainer in pair:
            trainer.process.communicate()


if __name__ == "__main__":
    train() if "train" in sys.argv[1:] else main()
