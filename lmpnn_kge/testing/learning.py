"""A check that a backbone can be trained through the contract alone."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from pathlib import Path

import torch

from lmpnn_kge.graph.geography import NAME, write_geography
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.runs.pretrain import pretrain_settings
from lmpnn_kge.testing.files import chance
from lmpnn_kge.testing.outcome import Subject, check, demand
from lmpnn_kge.training.embedding import EmbeddingTask
from lmpnn_kge.training.folder import PRETRAINING, RunFolder
from lmpnn_kge.training.loop import Loop
from lmpnn_kge.training.penalty import USUAL
from lmpnn_kge.training.provenance import PretrainProvenance
from lmpnn_kge.work.listener import SILENT

#: A few seconds of training: enough to see whether it learns, not enough to learn well.
SETTINGS = {"dim": 32, "epochs": 5, "batch_size": 256, "validate_every": 5, "patience": 0}

#: How many times better than chance it must rank unseen triples.
MARGIN = 10


@check("random_fields(dim, generator)")
def learns(subject: Subject) -> str:
    """After seconds of training on the embedded graph, unseen triples rank far above chance."""
    start = time.process_time()
    settings = pretrain_settings(subject.backbone, None, SETTINGS)
    if settings.penalty is None:  # choosing it would take too long here
        settings = dataclasses.replace(settings, penalty=USUAL)
    with tempfile.TemporaryDirectory() as folder:
        graph = KnowledgeGraph.open(write_geography(Path(folder) / NAME))
        task = EmbeddingTask(subject.backbone, graph, settings, torch.device("cpu"))
        provenance = PretrainProvenance.now(backbone="", dataset=None, graph="")
        run = RunFolder.create(Path(folder) / "training", PRETRAINING, settings, provenance)
        Loop(task, run).train(SILENT)
        mrr = task.rank(task.backbone, "valid", most=500).mrr
    by_chance = chance(graph.num_entities)
    demand(
        mrr > MARGIN * by_chance,
        f"a filtered MRR above {MARGIN * by_chance:.3f} on {NAME}, {MARGIN} × chance",
        f"{mrr:.4f} after {settings.epochs} epochs of width {task.template.dim}",
    )
    seconds = time.process_time() - start
    return f"MRR {mrr:.3f} on {NAME}, {mrr / by_chance:.0f} × chance, in {seconds:.1f} s"
