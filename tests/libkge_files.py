"""Writes files in LibKGE's layout, sound or not, without LibKGE."""

import sys
import types
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

from lmpnn_kge.backbones.libkge.safe_load import Saved, safe_open
from lmpnn_kge.backbones.libkge.stored import StoredTensor

ENTITIES, RELATIONS, DIM = 5, 3, 4


class Config:
    """Pickles as LibKGE's own does: the class's name, then its instance's dictionary."""

    def __init__(self, options: Any):
        self.options = options
        self.folder = "local/experiments/test"


Config.__module__ = "kge.config"
Config.__qualname__ = "Config"


def content(section: str = "distmult", name: str = "DistMult", /, **changes: Any) -> dict:
    """A package of a plain model with small tables; changes replace top-level keys."""
    generator = torch.Generator().manual_seed(0)
    state = OrderedDict(
        {
            "_entity_embedder._embeddings.weight": torch.randn(ENTITIES, DIM, generator=generator),
            "_relation_embedder._embeddings.weight": torch.randn(
                RELATIONS, DIM, generator=generator
            ),
        }
    )
    made = {
        "type": "package",
        "config": Config(
            {"model": section, section: {"class_name": name}, "dataset": {"name": "tiny"}}
        ),
        "model": (state, {}),
        "epoch": 1,
        "valid_trace": [],
        "job_id": "0",
        "dataset": {
            "num_entities": ENTITIES,
            "num_relations": RELATIONS,
            "meta": {
                "entity_ids": [f"e{i}" for i in range(ENTITIES)],
                "relation_ids": [f"r{i}" for i in range(RELATIONS)],
            },
        },
    }
    return made | changes


def save(path: Path, saved: Any, **options: Any) -> Path:
    """torch.save with our Config under LibKGE's name."""
    modules = {"kge": types.ModuleType("kge"), "kge.config": types.ModuleType("kge.config")}
    modules["kge.config"].Config = Config  # type: ignore[attr-defined]
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        torch.save(saved, path, **options)
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return path


def dataset_folder(folder: Path, entities: list[str], relations: list[str], **splits: str) -> Path:
    """A dataset folder; splits are given as the text of their files."""
    folder.mkdir()
    (folder / "dataset.yaml").write_text("dataset:\n  name: tiny\n")
    for name, ids in (("entity_ids", entities), ("relation_ids", relations)):
        lines = "".join(f"{row}\t{id_}\n" for row, id_ in enumerate(ids))
        (folder / f"{name}.del").write_text(lines)
    for split in ("train", "valid", "test"):
        (folder / f"{split}.del").write_text(splits.get(split, "0\t0\t1\n"))
    return folder


def safe_load(path: Path) -> Any:
    """The content of a file with all its tensors."""
    with safe_open(path) as saved:
        return _loaded(saved.content, saved)


def _loaded(value: Any, saved: Saved) -> Any:
    if isinstance(value, StoredTensor):
        return saved.load(value)
    if isinstance(value, dict):
        return {key: _loaded(item, saved) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_loaded(item, saved) for item in value)
    return value
