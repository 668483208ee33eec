"""Our scores against those of LibKGE itself, where it is installed.

LibKGE is handed what was read safely; its own loader, which would run what is in the file, is not
used.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from lmpnn_kge.backbone import Backbone
from lmpnn_kge.errors import CheckpointError, LmpnnError
from lmpnn_kge.libkge import LibkgeCheckpoint

#: How many questions are compared in each direction.
QUESTIONS = 256


class LibkgeMissing(LmpnnError):
    """There is nothing to compare with."""


def largest_difference(checkpoint: LibkgeCheckpoint, backbone: Backbone) -> float:
    """Between our scores and LibKGE's, over random questions in both directions."""
    model = _libkge_model(checkpoint)
    generator = torch.Generator().manual_seed(0)
    entities = torch.randint(backbone.num_entities, (QUESTIONS,), generator=generator)
    relations = torch.randint(backbone.num_relations, (QUESTIONS,), generator=generator)
    with torch.no_grad():
        tails = backbone.score_tails(entities, relations) - model.score_sp(entities, relations)
        heads = backbone.score_heads(relations, entities) - model.score_po(relations, entities)
    return max(tails.abs().max().item(), heads.abs().max().item())


def _libkge_model(checkpoint: LibkgeCheckpoint) -> Any:
    modules = checkpoint.options.get("modules") or []
    foreign = [str(module) for module in modules if str(module).split(".")[0] != "kge"]
    if foreign:
        raise CheckpointError(
            f"{checkpoint.path} would have LibKGE import {', '.join(foreign)}; refused"
        )
    try:
        import kge
        import kge.model
    except ImportError as error:
        raise LibkgeMissing(
            f"LibKGE is not importable ({error}), so nothing was compared; "
            "pip install git+https://github.com/uma-pi1/kge"
        ) from error
    # Whatever LibKGE trips over in a file that it did not write itself is the file's fault.
    try:
        return _load(checkpoint, kge)
    except Exception as error:
        raise CheckpointError(
            f"{checkpoint.path}: LibKGE itself cannot open it ({type(error).__name__}: {error})"
        ) from error


def _load(checkpoint: LibkgeCheckpoint, kge: Any) -> Any:
    saved = kge.Config(load_default=False)
    saved.options = copy.deepcopy(dict(checkpoint.options))
    config = kge.Config()
    config.load_config(saved)
    config.set("job.device", "cpu")
    config.set("dataset.num_entities", len(checkpoint.entities))
    config.set("dataset.num_relations", checkpoint.num_relations)
    dataset = kge.Dataset(config)
    # A reciprocal model asks for the ids, which would be looked for in LibKGE's own data folder.
    dataset._meta["entity_ids"] = [str(row) for row in range(len(checkpoint.entities))]
    dataset._meta["relation_ids"] = [str(row) for row in range(checkpoint.num_relations)]
    model = kge.model.KgeModel.create(config, dataset, init_for_load_only=True)
    state = dict(checkpoint.state)
    if checkpoint.reciprocal:
        state |= {f"_base_model.{name}": tensor for name, tensor in checkpoint.state.items()}
    model.load((state, {}))
    model.eval()
    return model
