"""Loader for LibKGE's checkpoints: needs no LibKGE and runs no code from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmpnn_kge.plugin import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from lmpnn_kge.plugin import Checkpoint

#: First bytes of a file that torch wrote: a zip archive, or in old versions a pickle.
SIGNATURES = (b"PK", b"\x80")


@hookimpl
def lmpnn_kge_load(file: Path) -> Checkpoint | None:
    with file.open("rb") as stream:
        if not stream.read(2).startswith(SIGNATURES):
            return None
    from lmpnn_kge.plugin import read_libkge

    return read_libkge(file)
