"""Memory of training and evaluation at NELL's size with the paper's settings, fp32 and K = 128."""

from pathlib import Path

import torch

from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.rank import evaluate
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.lmpnn import LmpnnTask
from lmpnn_kge.training.loop import Loop

from .measure import peak_megabytes
from .workload import backbone, evaluation_queries, training_queries

ENTITIES, RELATIONS, DIM = 63_361, 200, 2000


def main() -> None:
    graph = backbone(ENTITIES, DIM, RELATIONS)
    start = peak_megabytes()
    model = Lmpnn(graph, load_config("paper-nell"))
    for negatives in ("independent", "shared"):
        config = load_config("paper-nell", {"precision": "fp32", "negatives": negatives})
        found = training_queries(config.batch_size, ENTITIES, RELATIONS)
        widest = {name: found[name] for name in ("3p", "2in")}  # most rows; most messages to ?
        task = LmpnnTask(model, config, widest, {}, torch.float32)
        loop = Loop(task, RunFolder(Path("nowhere"), config, None))
        for batch in task.input.epoch(0):
            loop.step(batch)
        print(f"training, {negatives:11} negatives: peak {peak_megabytes():6,.0f} MB", flush=True)
    method = LmpnnMethod.of(model, config)
    few = evaluation_queries(20, ENTITIES, RELATIONS)
    evaluate(method, few)
    print(f"evaluation: peak {peak_megabytes():6,.0f} MB, of which the backbone {start:6,.0f} MB")


if __name__ == "__main__":
    main()
