"""Reads LibKGE's checkpoints, without LibKGE and without running anything in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmpnn_kge.plugin import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from lmpnn_kge.plugin import Checkpoint

#: How a file begins that torch wrote: as a zip archive, or in older versions as a pickle.
BEGINNINGS = (b"PK", b"\x80")


@hookimpl
def lmpnn_kge_load(file: Path) -> Checkpoint | None:
    with file.open("rb") as stream:
        if not stream.read(2).startswith(BEGINNINGS):
            return None
    from lmpnn_kge.plugin import read_libkge

    return read_libkge(file)
