"""Open a file that torch saved, without running code from it.

The pickle in the file is scanned before it is loaded: it may name only the classes and functions
that LibKGE's files need. Then torch's own restricted loader reads it.
"""

from __future__ import annotations

import pickletools
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch

from lmpnn_kge.errors import CheckpointError, short

#: All names that occur in LibKGE's checkpoints; the last two are replaced by `ADMITTED`.
NAMES = re.compile(
    r"""collections\ (OrderedDict|Counter)
      | torch\._utils\ _rebuild_(tensor_v2|parameter)
      | torch\ (Double|Float|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)Storage
      | torch\.torch_version\ TorchVersion
      | kge\.config\ Config""",
    re.VERBOSE,
)

#: How many times larger than the file its content may be; torch does not compress its files.
MAX_EXPANSION = 20

#: Old versions of torch wrote five pickles and then the numbers instead of a zip archive.
LEGACY_PICKLES = 5

# torch's list of admitted names is global, so only one thread may change it at a time.
_lock = threading.Lock()


class Config:
    """Stand-in for the pickled `kge.config.Config`; only its options are kept."""

    options: Any = None

    def __setstate__(self, state: Any) -> None:
        self.options = state.get("options") if isinstance(state, dict) else None


class Version(str):
    """Stand-in for TorchVersion that accepts only a string; the real class takes any object."""

    def __new__(cls, text: Any) -> Version:
        if not isinstance(text, str):
            raise ValueError("its torch version is not a string")
        return super().__new__(cls, text)


ADMITTED: tuple[tuple[Callable[..., Any], str], ...] = (
    (Config, "kge.config.Config"),
    (Version, "torch.torch_version.TorchVersion"),
)


def safe_load(path: Path) -> Any:
    """Load a file to the CPU with weights_only and a stand-in for LibKGE's Config."""
    try:
        if not path.exists():
            raise CheckpointError(f"{path} does not exist")
        if not path.is_file():
            raise CheckpointError(f"{path} is not a file; name the checkpoint itself")
        if not path.stat().st_size:
            raise CheckpointError(f"{path} is empty")
        _check_names(path)
        with _lock, _only_admitted():
            return torch.load(path, map_location="cpu", weights_only=True)
    except CheckpointError:
        raise
    # A broken file can make the unpickler fail in any way; none of these is a bug of ours.
    except Exception as error:
        raise CheckpointError(f"{path}: {_reason(error)}") from error


@contextmanager
def _only_admitted() -> Iterator[None]:
    """Admit our names and no others, even if the process has admitted more."""
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(list(ADMITTED))
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _check_names(path: Path) -> None:
    """Scan the pickles of a file; CheckpointError if one names anything but NAMES."""
    size = path.stat().st_size
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            for _ in range(LEGACY_PICKLES):
                _check_pickle(path, file, size)
        return
    with zipfile.ZipFile(path) as archive:
        content = sum(record.file_size for record in archive.infolist())
        if content > MAX_EXPANSION * size:
            raise ValueError(f"it would unpack to {content:,} bytes, far more than its own size")
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError("it is a zip archive that torch did not write")
        with archive.open(pickles[0]) as pickle:
            _check_pickle(path, pickle, size)


def _check_pickle(path: Path, file: IO[bytes], size: int) -> None:
    number = 0
    argument: Any
    for operation, argument, _ in pickletools.genops(file):
        match operation.name:
            case "PROTO" if argument != 2:
                raise ValueError(f"it uses pickle protocol {argument}, but torch writes 2")
            case "GLOBAL" if not NAMES.fullmatch(argument):
                raise CheckpointError(
                    f"{path}: refused because it names {short(argument.replace(' ', '.'))}, "
                    "which no LibKGE checkpoint needs; nothing was run"
                )
            case "BININT" | "BININT1" | "BININT2" | "LONG1" | "INT" | "LONG":
                number = argument
            # The last number before this is the size of a tensor's storage.
            case "BINPERSID" if number > size:
                raise ValueError("a tensor claims more numbers than the file has")


def _reason(error: Exception) -> str:
    """Shorten torch's long message to its one relevant line."""
    text = str(error)
    fact = text.partition("WeightsUnpickler error:")[2] or text
    first = (fact.strip() or "it ends too early").splitlines()[0]
    return f"not a readable checkpoint ({type(error).__name__}: {short(first)})"
