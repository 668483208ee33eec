"""What a run was trained with, found again: also if the run or its inputs have moved since."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.open import build, find_backbone, read_checkpoint
from lmpnn_kge.errors import RunError
from lmpnn_kge.files import file_hash
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.provenance import RunProvenance, located_path


def precision(provenance: RunProvenance) -> torch.dtype:
    """The precision a run began with: what is fast here and now must not decide its results."""
    return torch.bfloat16 if provenance.precision == "bf16" else torch.float32


def find_moved(recorded: str | Path, run: Path) -> Path:
    """A recorded file or folder, or one of the same name and parents near a run that was moved.

    If there is neither, the recorded path, so that opening it says what is missing.
    """
    path = located_path(str(recorded), run)
    if path.exists():
        return path
    here = run.resolve()
    for nearby in (here, *list(here.parents)[:3]):
        for depth in range(1, 4):
            candidate = nearby.joinpath(*path.parts[-depth:])
            if candidate.exists():
                return candidate
    return path


def find_checkpoint(
    run: RunFolder[TrainSettings, RunProvenance], given: str | Path | None
) -> tuple[Path, str | None]:
    """The checkpoint of a run, and its hash if it is not the file that the run was trained on."""
    recorded = run.provenance.checkpoint
    file = find_moved(recorded.file, run.path) if given is None else Path(given)
    if not file.is_file():
        raise RunError(
            f"the checkpoint of {run.path} is not at {file}; say where it is "
            "with --checkpoint FILE (in Python: checkpoint=)"
        )
    sha256 = file_hash(file)
    return file, None if sha256 == recorded.sha256 else sha256


def open_backbone_of(
    run: RunFolder[TrainSettings, RunProvenance],
    file: Path,
    names: Vocabulary,
    *,
    is_other: bool,
) -> Backbone:
    """The backbone of a run, with the run's names; RunError if it is one of another graph."""
    checkpoint = read_checkpoint(file)
    _, backbone_class = find_backbone(checkpoint, run.provenance.backbone)
    backbone, _ = build(checkpoint, backbone_class)
    sizes = backbone.num_entities, backbone.num_relations
    if sizes != (names.num_entities, names.num_relations):
        raise RunError(
            f"{run.path} was trained on {names.num_entities} entities and {names.num_relations} "
            f"relations, but {file} has {sizes[0]} and {sizes[1]}"
        )
    if is_other and backbone.has_names and not backbone.vocabulary.has_ids_of(names):
        raise RunError(f"{file} has other names, or in another order, than {run.path}")
    return dataclasses.replace(
        backbone, entity_ids=names.entity_ids, relation_ids=names.relation_ids
    )
