"""A check that a backbone can be trained, by nothing but the contract."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch

from lmpnn_kge.backbone import Backbone, ScoreType
from lmpnn_kge.config import DEFAULT, Recipe, load_settings
from lmpnn_kge.geography import NAME, write_geography
from lmpnn_kge.libkge.dataset import LibkgeDataset
from lmpnn_kge.loop import Silent
from lmpnn_kge.pretraining import Pretrainer
from lmpnn_kge.run_folder import RunFolder
from lmpnn_kge.testing.files import chance
from lmpnn_kge.testing.outcome import Subject, check, demand

#: A few seconds of training: enough to see whether it learns, not to learn well.
SETTINGS = {"dim": 32, "epochs": 5, "batch_size": 256, "validate_every": 5, "patience": 0}

#: Of `pretrain`; one that takes it for too large, as a deep f may, tries again.
RATES = (0.1, 0.01)

#: How many times as well as by chance it must rank triples that it has not seen.
MARGIN = 10


@check("random_fields(dim, generator)")
def learns(subject: Subject) -> str:
    """Trained on the embedded graph for seconds, it ranks unseen triples far better than chance."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        graph = LibkgeDataset.open(write_geography(Path(folder) / NAME))
        by_chance = chance(len(graph.entity_ids))
        for rate in RATES:
            mrr = _trained(subject.kind, graph, Path(folder) / f"at-{rate}", rate)
            if mrr > MARGIN * by_chance:
                break
    demand(
        mrr > MARGIN * by_chance,
        f"a filtered MRR above {MARGIN * by_chance:.3f} on {NAME}, {MARGIN} × chance",
        f"{mrr:.4f} after {SETTINGS['epochs']} epochs, at learning rates {RATES}",
    )
    took = f"at learning rate {rate}, in {time.process_time() - start:.1f} s"
    return f"MRR {mrr:.3f} on {NAME}, {mrr / by_chance:.0f} × chance, {took}"


def _trained(kind: type[Backbone], graph: LibkgeDataset, place: Path, rate: float) -> float:
    """The filtered MRR on valid of a backbone trained at a learning rate."""
    inner = kind.score_type is ScoreType.INNER_PRODUCT
    names = [DEFAULT, *([] if inner else ["distance"])]
    recipe = load_settings(Recipe, names, {**SETTINGS, "learning_rate": rate})
    folder = RunFolder.create(place, recipe, {}, {})
    trainer = Pretrainer(folder, kind, graph, torch.device("cpu"))
    trainer.train(Silent())
    return trainer.rank(trainer.backbone, "valid", most=500).mrr
