"""A check that a backbone can be trained, by nothing but the contract."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch

from lmpnn_kge.backbones.contract import ScoreType
from lmpnn_kge.graph.formats.libkge import LibkgeDataset
from lmpnn_kge.graph.geography import NAME, write_geography
from lmpnn_kge.settings import DEFAULT, Recipe, load_settings
from lmpnn_kge.testing.files import chance
from lmpnn_kge.testing.outcome import Subject, check, demand
from lmpnn_kge.training.embedding import Pretrainer
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.loop import Silent

#: A few seconds of training: enough to see whether it learns, not to learn well.
SETTINGS = {"dim": 32, "epochs": 5, "batch_size": 256, "validate_every": 5, "patience": 0}

#: How many times as well as by chance it must rank triples that it has not seen.
MARGIN = 10


@check("random_fields(dim, generator)")
def learns(subject: Subject) -> str:
    """Trained on the embedded graph for seconds, it ranks unseen triples far better than chance."""
    start = time.process_time()
    inner = subject.kind.score_type is ScoreType.INNER_PRODUCT
    recipe = load_settings(Recipe, [DEFAULT, *([] if inner else ["distance"])], SETTINGS)
    with tempfile.TemporaryDirectory() as folder:
        graph = LibkgeDataset.open(write_geography(Path(folder) / NAME))
        place = RunFolder.create(Path(folder) / "training", recipe, {}, {})
        trainer = Pretrainer(place, subject.kind, graph, torch.device("cpu"))
        trainer.train(Silent())
        mrr = trainer.rank(trainer.backbone, "valid", most=500).mrr
    by_chance = chance(len(graph.entity_ids))
    demand(
        mrr > MARGIN * by_chance,
        f"a filtered MRR above {MARGIN * by_chance:.3f} on {NAME}, {MARGIN} × chance",
        f"{mrr:.4f} after {recipe.epochs} epochs of width {trainer.template.dim}",
    )
    seconds = time.process_time() - start
    return f"MRR {mrr:.3f} on {NAME}, {mrr / by_chance:.0f} × chance, in {seconds:.1f} s"
