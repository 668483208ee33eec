"""Backbones as .safetensors files: tensors under the names of their fields, all else as JSON.

tensors    entities [E, d]; relations [R, w], or [2R, w] if reciprocal; the model's own tensors
metadata   lmpnn_kge: {"format": 1, "backbone": "rotate", "reciprocal": false, "dataset": "toy",
           "entity_ids": [E names], "relation_ids": [R names], "fields": {"p": 1.0}}

dataset and names may be null; fields are the model's own numbers and strings.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from lmpnn_kge.backbones import mapped
from lmpnn_kge.backbones.checkpoint import Checkpoint
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.discovery import backbone_name
from lmpnn_kge.backbones.open import as_backbone
from lmpnn_kge.errors import BackboneError, CheckpointError, short
from lmpnn_kge.files import write_parts

#: The key of our metadata, and the version of its format.
KEY, FORMAT = "lmpnn_kge", 1

#: Types of numbers by their names in a file.
TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
NAMES = {kind: name for name, kind in TYPES.items()}

#: Types of a model's own fields that are not tensors.
Plain = str | bool | int | float | None

#: Largest size of the metadata; safetensors allows slightly more.
MAX_METADATA = 99_000_000


def save_backbone(
    backbone: Backbone | str | Path,
    file: str | Path,
    *,
    name: str | None = None,
    dataset: str | None = None,
) -> None:
    """Write a backbone, or that of a checkpoint file, to a .safetensors file in single precision.

    name is the name of its plugin; by default it is looked up. dataset is the name of its graph, by
    which `train` finds the graph's folder.
    """
    backbone, file = as_backbone(backbone), Path(file)
    if file.suffix != ".safetensors":
        raise BackboneError(f"{file} must end in .safetensors, or it will not be recognised")
    tensors = {name: _stored(name, tensor) for name, tensor in backbone.tensors().items()}
    if not backbone.reciprocal:  # the other rows are derived from these
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
        raise BackboneError(
            f"{file} has no space for the names of {backbone.num_entities:,} entities; save the "
            "backbone without names, and give its graph with --dataset when you use it"
        )
    write_parts(_content(tensors, {KEY: text}), file)


def _stored(name: str, tensor: Tensor) -> Tensor:
    tensor = tensor.detach().cpu()
    tensor = tensor.float() if tensor.is_floating_point() else tensor
    if tensor.dtype not in NAMES:
        raise BackboneError(f"{name} has numbers of type {tensor.dtype}, which cannot be written")
    if not tensor.isfinite().all():
        raise BackboneError(f"{name} has NaN, infinite or too large numbers; nothing was written")
    return tensor.contiguous()


def _content(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> Iterator[bytes | memoryview]:
    """The parts of a file: the size of its header, the header, and the numbers of each tensor.

    safetensors itself would hold two more copies of the entity table.
    """
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    # Wider numbers first, as safetensors does it, so that all of them are aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    end = 0
    for name in names:
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for name in names:
        array = tensors[name].numpy()
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        yield little.reshape(-1).view(np.uint8).data


def _plain_fields(backbone: Backbone) -> dict[str, Plain]:
    """The model's own fields that are not tensors; BackboneError if one cannot be written."""
    tensors = backbone.tensors()
    given = {field.name for field in dataclasses.fields(backbone) if field.init}
    own = backbone.own_fields()
    fields = {name: own[name] for name in own if name in given and name not in tensors}
    for name, value in fields.items():
        if not isinstance(value, Plain):
            raise BackboneError(
                f"{name} of {type(backbone).__name__} is a {type(value).__name__}; only tensors, "
                "numbers and strings can be written"
            )
    return fields


def read_safetensors(file: Path) -> Checkpoint:
    """Read a file that `save_backbone` wrote; CheckpointError if it is not such a file."""
    try:
        # safetensors' own mapping for torch is writable, and therefore counts as memory.
        is_large = file.stat().st_size >= mapped.LARGE
        with safe_open(file, "np" if is_large else "pt") as content:
            facts = _facts(content.metadata())
            if is_large:
                tensors, notes = _mapped_tensors(file)
            else:
                names = content.keys()
                tensors, notes = {name: content.get_tensor(name).clone() for name in names}, []
    except (OSError, SafetensorError, ValueError, RecursionError, MemoryError) as error:
        raise CheckpointError(f"not a safetensors file of a backbone: {error}") from error
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
        notes=tuple(notes),
    )


def _mapped_tensors(file: Path) -> tuple[dict[str, Any], list[str]]:
    """The tensors of a file that safetensors has checked, and notes; large ones stay in the file.

    Their places follow a header: its length in 8 bytes, then JSON.
    """
    tensors: dict[str, Any] = {}
    notes: list[str] = []
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(length))
        header.pop("__metadata__", None)
        for name, entry in header.items():
            if entry["dtype"] not in TYPES:
                raise ValueError(f"{name} has numbers of type {short(entry['dtype'])}")
            dtype, (first, last) = TYPES[entry["dtype"]], entry["data_offsets"]
            stored = mapped.map_bytes(stream, 8 + length + first, last - first)
            if last - first < mapped.LARGE:
                stored = stored.copy()
            elif stored.ctypes.data % dtype.itemsize:
                stored, note = mapped.converted(file, name, stored, bytes)
                notes += note
            tensors[name] = torch.from_numpy(stored).view(dtype).reshape(entry["shape"])
    return tensors, notes


def _facts(metadata: dict[str, str] | None) -> dict[str, Any]:
    """Parse our metadata; Checkpoint checks the values."""
    if metadata is None or KEY not in metadata:
        raise ValueError(f"its metadata has no {KEY!r}; lmpnn_kge.save_backbone writes such files")
    facts = json.loads(metadata[KEY])
    names = ("backbone", "reciprocal", "dataset", "entity_ids", "relation_ids", "fields")
    missing = [name for name in names if not isinstance(facts, dict) or name not in facts]
    if missing:
        raise ValueError(f"its metadata lacks {', '.join(missing)}")
    if facts.get("format") != FORMAT:
        raise ValueError(f"its format is {facts.get('format')!r}, but this version reads {FORMAT}")
    fields = facts["fields"]
    if not isinstance(fields, dict) or not all(isinstance(v, Plain) for v in fields.values()):
        raise ValueError("its fields must be numbers and strings")
    return facts
