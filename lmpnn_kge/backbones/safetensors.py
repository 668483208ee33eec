"""Backbones as .safetensors files: tensors under the names of their fields, all else as JSON.

tensors    entities [E, d]; relations [R, w], or [2R, w] if reciprocal; a model's further tensors
metadata   lmpnn_kge: {"format": 1, "backbone": "rotate", "reciprocal": false, "dataset": "toy",
           "entity_ids": [E names], "relation_ids": [R names], "fields": {"p": 1.0}}

dataset and names may be null; fields are a model's further numbers and strings.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from lmpnn_kge.backbones.checkpoint import Checkpoint
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.plugins import backbone_name
from lmpnn_kge.errors import BackboneError, CheckpointError
from lmpnn_kge.files import write_whole

if TYPE_CHECKING:
    from torch import Tensor

#: The key of our metadata, and the version of what is there.
KEY, FORMAT = "lmpnn_kge", 1

#: What a further field may be that is no tensor.
Plain = str | bool | int | float | None

#: The space that a file has for its metadata, and a little less.
MAX_METADATA = 99_000_000


def save_backbone(
    backbone: Backbone,
    file: str | Path,
    *,
    name: str | None = None,
    dataset: str | None = None,
) -> None:
    """Write a backbone with the names of its rows to a .safetensors file, in single precision.

    name is that of its plugin, which is looked up if it is not given. dataset is the name of its
    graph, by which `train` finds the graph's folder.
    """
    file = Path(file)
    if file.suffix != ".safetensors":
        raise BackboneError(f"{file} must end in .safetensors, by which it is known again")
    tensors = {name: _stored(name, tensor) for name, tensor in backbone.tensors().items()}
    if not backbone.reciprocal:  # the rest is derived from these
        tensors["relations"] = tensors["relations"][: backbone.num_relations]
    facts = {
        "format": FORMAT,
        "backbone": name or backbone_name(type(backbone)),
        "reciprocal": backbone.reciprocal,
        "dataset": dataset,
        "entity_ids": backbone.entity_ids,
        "relation_ids": backbone.relation_ids,
        "fields": _plain_fields(backbone),
    }
    text = json.dumps(facts)
    if len(json.dumps(text)) > MAX_METADATA:  # a JSON string in the JSON of the file
        raise BackboneError(f"{file} has no space for so many names; leave them out, for --dataset")
    write_whole(file, save(tensors, {KEY: text}))


def _stored(name: str, tensor: Tensor) -> Tensor:
    tensor = tensor.detach().cpu()
    tensor = tensor.float() if tensor.is_floating_point() else tensor
    if not tensor.isfinite().all():
        raise BackboneError(f"{name} holds NaN, infinite or too large numbers; nothing was written")
    return tensor.clone().contiguous()  # for no two may share their memory


def _plain_fields(backbone: Backbone) -> dict[str, Plain]:
    """What a model adds to the contract, without its tensors."""
    known = {field.name for field in dataclasses.fields(Backbone)} | backbone.tensors().keys()
    own = [f.name for f in dataclasses.fields(backbone) if f.init and f.name not in known]
    fields = {name: getattr(backbone, name) for name in own}
    for name, value in fields.items():
        if not isinstance(value, Plain):
            raise BackboneError(
                f"{name} of {type(backbone).__name__} is a {type(value).__name__}; only tensors, "
                "numbers and strings can be written"
            )
    return fields


def read_safetensors(file: Path) -> Checkpoint:
    """Read a file that `save_backbone` wrote; CheckpointError says why it cannot be read."""
    try:
        with safe_open(file, "pt") as content:
            facts = _facts(content.metadata())
            tensors = {name: content.get_tensor(name).clone() for name in content.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        raise CheckpointError(f"no safetensors file of a backbone: {error}") from error
    return Checkpoint(
        path=file,
        kind="safetensors file",
        model=facts["backbone"],
        reciprocal=facts["reciprocal"],
        entities=tensors.pop("entities", None),
        relations=tensors.pop("relations", None),
        fields=facts["fields"] | tensors,
        entity_ids=facts["entity_ids"],
        relation_ids=facts["relation_ids"],
        dataset=facts["dataset"],
    )


def _facts(metadata: dict[str, str] | None) -> dict[str, Any]:
    """Our metadata; Checkpoint looks at the values that it is given."""
    if metadata is None or KEY not in metadata:
        raise ValueError(f"its metadata has no {KEY!r}; lmpnn_kge.save_backbone writes such files")
    facts = json.loads(metadata[KEY])
    names = ("backbone", "reciprocal", "dataset", "entity_ids", "relation_ids", "fields")
    missing = [name for name in names if not isinstance(facts, dict) or name not in facts]
    if missing:
        raise ValueError(f"its metadata says nothing of {', '.join(missing)}")
    if facts.get("format") != FORMAT:
        raise ValueError(f"its format is {facts.get('format')!r}, but this version reads {FORMAT}")
    fields = facts["fields"]
    if not isinstance(fields, dict) or not all(isinstance(v, Plain) for v in fields.values()):
        raise ValueError("its fields must be numbers and strings")
    return facts
