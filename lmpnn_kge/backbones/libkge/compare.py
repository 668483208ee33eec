"""Comparison of our scores with LibKGE's own, if LibKGE is installed.

LibKGE gets the content that we have read safely. Its own loader would run code from the file and is
not used.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

import torch

from lmpnn_kge.backbones.checkpoint import Checkpoint
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.libkge.checkpoint import LibkgeCheckpoint
from lmpnn_kge.errors import LmpnnError, short

#: Number of questions to compare in each direction.
QUESTIONS = 256


class LibkgeMissing(LmpnnError):
    """LibKGE is not installed."""


def largest_difference(checkpoint: Checkpoint, backbone: Backbone) -> float:
    """Largest difference of our scores from LibKGE's, over random questions in both directions."""
    if not isinstance(checkpoint, LibkgeCheckpoint):
        raise checkpoint.error(f"LibKGE itself cannot open a {checkpoint.kind}")
    try:
        import kge
        import kge.model
    except ImportError as error:
        raise LibkgeMissing(
            f"LibKGE cannot be imported ({error}), so nothing was compared; "
            "pip install git+https://github.com/uma-pi1/kge"
        ) from error
    generator = torch.Generator().manual_seed(0)
    entities = torch.randint(backbone.num_entities, (QUESTIONS,), generator=generator)
    relations = torch.randint(backbone.num_relations, (QUESTIONS,), generator=generator)
    # LibKGE does not check its files, so any exception here means that the file is wrong.
    try:
        model = _libkge_model(checkpoint, kge)
        with torch.no_grad():
            tails = model.score_sp(entities, relations)
            heads = model.score_po(relations, entities)
    except Exception as error:
        reason = short(f"{type(error).__name__}: {error}")
        raise checkpoint.error(f"LibKGE itself cannot open it ({reason})") from error
    differences = torch.stack([
        backbone.score_tails(entities, relations) - tails,
        backbone.score_heads(relations, entities) - heads,
    ])  # fmt: skip
    if not differences.isfinite().all():
        raise checkpoint.error("scores overflow: the tables have numbers that are too large")
    return differences.abs().max().item()


def _libkge_model(checkpoint: LibkgeCheckpoint, kge: Any) -> Any:
    saved = kge.Config(load_default=False)
    saved.options = _harmless(checkpoint.options)
    config = kge.Config()
    config.load_config(saved)
    config.set("job.device", "cpu")
    config.set("dataset.num_entities", len(checkpoint.entities))
    config.set("dataset.num_relations", checkpoint.num_relations)
    dataset = kge.Dataset(config)
    # A reciprocal model needs ids; without these LibKGE would look for them in its data folder.
    dataset._meta["entity_ids"] = [str(row) for row in range(len(checkpoint.entities))]
    dataset._meta["relation_ids"] = [str(row) for row in range(checkpoint.num_relations)]
    model = kge.model.KgeModel.create(config, dataset, init_for_load_only=True)
    state = dict(checkpoint.state)
    if checkpoint.reciprocal:
        state |= {f"_base_model.{name}": tensor for name, tensor in checkpoint.state.items()}
    model.load((state, {}))
    model.eval()
    return model


def _harmless(options: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the options by which a file could make LibKGE import a module or read any file.

    LibKGE imports what `modules` lists, and reads NAME.yaml for the model and for every `import`.
    """
    kept = copy.deepcopy({key: options[key] for key in options if key not in ("import", "modules")})
    imports = options.get("import")
    names = [*(imports if isinstance(imports, list) else []), options.get("model")]
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
            raise ValueError(f"it names a file {short(name)}")
    return kept | {"import": names}
