"""Open a file that torch saved without running anything that is in it."""

from __future__ import annotations

import re
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from lmpnn_kge.errors import CheckpointError

#: How much larger than the file its content may be; torch does not compress, so this is generous.
MAX_EXPANSION = 20

# torch's list of admitted names belongs to the whole process.
_lock = threading.Lock()


class Config:
    """Stands in for the pickled `kge.config.Config`; only its options are kept."""

    options: dict[str, Any]

    def __setstate__(self, state: Any) -> None:
        options = state.get("options") if isinstance(state, dict) else None
        if not isinstance(options, dict):
            raise ValueError("its configuration has no options")
        self.options = options


#: What LibKGE's files name beyond torch's own list, and what is made of it.
ADMITTED: tuple[tuple[Callable[..., Any], str], ...] = (
    (Config, "kge.config.Config"),
    (str, "torch.torch_version.TorchVersion"),
)


def safe_load(path: Path) -> Any:
    """What torch.load gives with weights_only, on the CPU, admitting LibKGE's two further names."""
    if not path.exists():
        raise CheckpointError(f"{path} does not exist")
    if not path.is_file():
        raise CheckpointError(f"{path} is not a file; name the checkpoint itself")
    try:
        _check_expansion(path)
        with _lock, torch.serialization.safe_globals(list(ADMITTED)):
            return torch.load(path, map_location="cpu", weights_only=True)
    # A broken file can make the unpickler fail in any way; none of them is a bug of ours.
    except Exception as error:
        raise CheckpointError(f"{path}: {_reason(error)}") from error


def _check_expansion(path: Path) -> None:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            content = sum(record.file_size for record in archive.infolist())
        if content > MAX_EXPANSION * path.stat().st_size:
            raise ValueError(f"it would unpack to {content:,} bytes, far more than its own size")


def _reason(error: Exception) -> str:
    """torch's pages of advice, cut down to the one fact that matters."""
    text = str(error)
    if name := re.search(r"GLOBAL (\S+)", text):
        return (
            f"refused, for it wants to run {name[1]}, which no LibKGE checkpoint needs; "
            "nothing was run"
        )
    fact = text.partition("WeightsUnpickler error:")[2] or text
    first = (fact.strip() or "it ends too early").splitlines()[0]
    return f"not a readable checkpoint ({type(error).__name__}: {first})"
