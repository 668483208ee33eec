"""Methods that need no training, on any checkpoint: CQD and the frequency of tails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmpnn_kge.device import choose_device
from lmpnn_kge.errors import ConfigError, DatasetError, QueryError, choices
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.methods.cqd import Cqd, CqdBeam
from lmpnn_kge.methods.frequency import Frequency
from lmpnn_kge.methods.rank import Method
from lmpnn_kge.methods.results import evaluate_split
from lmpnn_kge.queries.sample import sample_store
from lmpnn_kge.runs.inputs import Material, Sample, gather
from lmpnn_kge.settings import DEFAULT, Decomposition, load_settings

METHODS = ("cqd", "cqd-beam", "frequency")


def evaluate_method(
    name: str,
    checkpoint: str | Path,
    *,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    queries: str | Path | None = None,
    split: str = "test",
    limit: int | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    progress: Callable[[str, int], object] = lambda name, done: None,
    tell: Callable[[str], object] = lambda note: None,
    sample: Sample = sample_store,
) -> dict[str, Any]:
    """The metrics of a method on a checkpoint and its queries, which are found as `train` does.

    limit takes so many queries of each type at most, evenly spread; tell hears the notes before
    anything is ranked.
    """
    if name not in METHODS:
        raise ConfigError(f"no method is called {name!r}; {choices(name, METHODS)}")
    material = gather(
        checkpoint, backbone=backbone, dataset=dataset, queries=queries, sample=sample
    )
    store = material.store
    if split not in store.splits:
        raise QueryError(
            f"{material.queries} has no split {split!r}; {choices(split, store.splits)}"
        )
    method = _method(name, material, settings or {}, device)
    for note in material.notes:
        tell(note)
    asked = store.splits[split]
    return evaluate_split(method, split, asked, material.queries, limit, progress)


def _method(name: str, material: Material, settings: Mapping[str, Any], device: str) -> Method:
    chosen = choose_device(device)
    if name == "frequency":
        if settings:
            raise ConfigError("frequency has no settings")
        if material.dataset is None:
            raise DatasetError("frequency counts training edges: give --dataset DIR")
        return Frequency.of(KnowledgeGraph.open(material.dataset), material.backbone)
    decomposition = load_settings(Decomposition, [DEFAULT], settings)
    moved = material.backbone.to(chosen)
    return (Cqd if name == "cqd" else CqdBeam).of(moved, decomposition)
