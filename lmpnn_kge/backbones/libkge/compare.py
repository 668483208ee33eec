"""Our scores against those of LibKGE itself, where it is installed.

LibKGE is handed what was read safely; its own loader, which would run what is in the file, is not
used.
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

#: How many questions are compared in each direction.
QUESTIONS = 256


class LibkgeMissing(LmpnnError):
    """There is nothing to compare with."""


def largest_difference(checkpoint: Checkpoint, backbone: Backbone) -> float:
    """Between our scores and LibKGE's, over random questions in both directions."""
    if not isinstance(checkpoint, LibkgeCheckpoint):
        raise checkpoint.error(f"a {checkpoint.kind}, which LibKGE itself cannot open")
    try:
        import kge
        import kge.model
    except ImportError as error:
        raise LibkgeMissing(
            f"LibKGE is not importable ({error}), so nothing was compared; "
            "pip install git+https://github.com/uma-pi1/kge"
        ) from error
    generator = torch.Generator().manual_seed(0)
    entities = torch.randint(backbone.num_entities, (QUESTIONS,), generator=generator)
    relations = torch.randint(backbone.num_relations, (QUESTIONS,), generator=generator)
    # Whatever LibKGE trips over in a file that it did not write itself is the file's fault.
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
        raise checkpoint.error("scores overflow: the tables hold numbers that are too large")
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


def _harmless(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by which a file cannot make LibKGE import a module or read a file of its choice.

    LibKGE imports what `modules` lists, and reads NAME.yaml for the model and for every `import`.
    """
    kept = copy.deepcopy({key: options[key] for key in options if key not in ("import", "modules")})
    imports = options.get("import")
    names = [*(imports if isinstance(imports, list) else []), options.get("model")]
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
            raise ValueError(f"it names a file {short(name)}")
    return kept | {"import": names}
