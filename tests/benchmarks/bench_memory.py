"""Memory of training and evaluation at NELL's size with the paper's settings, fp32 and K = 128."""

from pathlib import Path

import torch

from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods.rank import Scorer, evaluate
from lmpnn_kge.settings import load_config
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.lmpnn import Trainer

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
        trainer = Trainer(RunFolder(Path(), config, {}), model, widest, {}, torch.float32)
        for batch in trainer.input.epoch(0):
            trainer.step(batch)
        print(f"training, {negatives:11} negatives: peak {peak_megabytes():6,.0f} MB", flush=True)
    scorer = Scorer.of(model, config)
    few = evaluation_queries(20, ENTITIES, RELATIONS)
    evaluate(scorer, few)
    print(f"evaluation: peak {peak_megabytes():6,.0f} MB, of which the backbone {start:6,.0f} MB")


if __name__ == "__main__":
    main()
