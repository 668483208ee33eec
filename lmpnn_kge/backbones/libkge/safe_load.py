"""Open a file that torch saved, without running code from it.

Neither torch nor Python's pickle reads the file: torch's restricted loader has had holes, and two
readers can see two different contents in one file. Our own reader knows the few names that LibKGE's
files need, checks every size against the file, and loads the very bytes that it checked.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from lmpnn_kge.backbones.libkge.plain_pickle import Name, PlainPickle, Refused
from lmpnn_kge.backbones.libkge.saved_file import PickleFile, SavedFile, open_saved
from lmpnn_kge.backbones.libkge.stored import TYPES, Storage, StoredTensor
from lmpnn_kge.errors import CheckpointError, one_line, short

#: How an old file begins: a mark and a version, each as a pickle.
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001


class Config:
    """Stand-in for the pickled `kge.config.Config`; only its options are kept."""

    options: Any = None

    def build(self, state: Any) -> None:
        self.options = state.get("options") if isinstance(state, dict) else None


def _tensor(
    storage: Any, offset: Any, shape: Any, stride: Any, grad: Any, hooks: Any, metadata: Any = None
) -> StoredTensor:
    if not isinstance(storage, Storage):
        raise ValueError("a tensor has no numbers")
    return StoredTensor(storage, offset, shape, stride)


def _parameter(tensor: Any, grad: Any, hooks: Any) -> StoredTensor:
    if not isinstance(tensor, StoredTensor):
        raise ValueError("a parameter is not a tensor")
    return tensor


def _ordered(items: Any = ()) -> dict[Any, Any]:
    if items != ():
        raise ValueError("an ordered dictionary is written as torch never does")
    return {}


def _counter(items: Any = None) -> dict[Any, Any]:
    if not isinstance(items, dict | None):
        raise ValueError("a counter is not made of counts")
    return dict(items or {})


def _version(text: Any) -> str:
    if not isinstance(text, str):
        raise ValueError("its torch version is not a string")
    return text


#: All names that occur in LibKGE's checkpoints.
NAMES = {
    name.name: name
    for name in (
        Name("collections.OrderedDict", call=_ordered),
        Name("collections.Counter", call=_counter),
        Name("torch._utils._rebuild_tensor_v2", call=_tensor),
        Name("torch._utils._rebuild_parameter", call=_parameter),
        Name("torch.torch_version.TorchVersion", call=_version, new=_version),
        Name("kge.config.Config", new=Config),
        *(Name(f"torch.{type_}Storage") for type_ in TYPES),
    )
}


class Saved:
    """The content of an open file, in which tensors are described but not read."""

    def __init__(self, file: SavedFile):
        self.file = file
        self.storages: dict[str, Storage] = {}
        stream, size = file.pickle()
        machine = PlainPickle(stream, size, NAMES, self._storage)
        if isinstance(file, PickleFile):
            if (machine.load(), machine.load()) != (MAGIC, VERSION):
                raise ValueError("it begins unlike every file that torch writes")
            machine.load()  # the machine that wrote it
        self.content = machine.load()
        if isinstance(file, PickleFile):
            keys = machine.load()
            if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
                raise ValueError("it does not list its tensors")
            if sorted(keys) != sorted(self.storages):
                raise ValueError("it lists other tensors than it has")
            file.locate([self.storages[key] for key in keys])
        elif stream.read(1):
            raise ValueError("something follows its pickle")

    def load(self, tensor: StoredTensor) -> Tensor:
        return tensor.load(self.file.read)

    def _storage(self, reference: Any) -> Storage:
        """A reference to numbers: ("storage", type, key, device, count), and None in old files."""
        match reference:
            case ("storage", Name(name=name), str(key), _, int(count)) | (
                "storage", Name(name=name), str(key), _, int(count), None
            ) if name.endswith("Storage") and 0 <= count <= self.file.size:  # fmt: skip
                storage = Storage(key, name.removeprefix("torch.").removesuffix("Storage"), count)
            case ("storage", Name(), str(), _, int(count), *_) if count > self.file.size:
                raise ValueError("a tensor claims more numbers than the file has")
            case _:
                raise ValueError(f"it refers to {short(reference)}, which torch never does")
        if self.storages.setdefault(key, storage) != storage:
            raise ValueError("it describes a tensor in two ways")
        return storage


@contextmanager
def safe_open(path: Path) -> Iterator[Saved]:
    """Open a file; CheckpointError if it cannot be read, and if a ValueError ends the block."""
    if not path.exists():
        raise CheckpointError(f"{path} does not exist")
    if not path.is_file():
        raise CheckpointError(f"{path} is not a file; name the checkpoint itself")
    try:
        with path.open("rb") as stream:
            if not path.stat().st_size:
                raise CheckpointError(f"{path} is empty")
            try:
                saved = Saved(open_saved(stream))
            except Refused as refused:
                raise CheckpointError(
                    f"{path}: refused because it names {short(str(refused))}, which no LibKGE "
                    "checkpoint needs; nothing was run"
                ) from None
            except (ValueError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
                reason = f"not a readable checkpoint: {one_line(error)}"
                raise CheckpointError(f"{path}: {reason}") from error
            yield saved
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: {one_line(error)}") from error
