"""Loader for the .safetensors files that `lmpnn_kge.save_backbone` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmpnn_kge.plugin import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from lmpnn_kge.plugin import Checkpoint


@hookimpl
def lmpnn_kge_load(file: Path) -> Checkpoint | None:
    if file.suffix != ".safetensors":
        return None
    from lmpnn_kge.plugin import read_safetensors

    return read_safetensors(file)
