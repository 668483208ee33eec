"""Pickles of plain containers, read without running anything that is in them.

A pickle may name only the containers below. A process of its own loads it first, for no check
reaches the places where CPython's unpickler can break.
"""

from __future__ import annotations

import gc
import json
import pickle
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import DatasetError, short

# Only types of which neither the pickle nor anybody else can change anything.
_ADMITTED = {
    (module, kind.__name__): kind
    for module in ("builtins", "__builtin__")
    for kind in (set, frozenset, dict, list)
} | {("collections", "defaultdict"): defaultdict}

#: Bytes that a pickle may take in memory, for each of its own and in any case.
MEMORY = 64, 4 << 30

#: What a process ends with that has refused a file.
REFUSED = 3

_REHEARSAL = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from lmpnn_kge.graph.formats.safe_pickle import rehearse
rehearse(sys.argv[2:])
"""


@contextmanager
def uncollected() -> Iterator[None]:
    """Many objects without a cycle: looking for one takes longer than making them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@uncollected()
def rehearse(files: Sequence[str]) -> None:
    """Load pickles in this process, with so little room that those which pass do so anywhere."""
    try:
        import resource
    except ImportError:  # not on Windows
        pass
    else:
        each, least = MEMORY
        most = least + each * max(Path(file).stat().st_size for file in files)
        for limit, value in ((resource.RLIMIT_STACK, 1 << 20), (resource.RLIMIT_AS, most)):
            hard = resource.getrlimit(limit)[1]
            soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (soft, hard))
    for file in files:
        try:
            load(Path(file))
        except DatasetError as error:
            print(error, file=sys.stderr)
            sys.exit(REFUSED)
        print(end=".", flush=True)


def try_out(folder: Path, names: Sequence[str]) -> None:
    """Load those pickles that are there in another process; DatasetError names what breaks it."""
    paths = [folder / f"{name}.pkl" for name in names]
    files = [str(path) for path in paths if path.is_file()]
    if not files:
        return
    places = [str(Path(__file__).parents[3]), *filter(None, sys.path)]
    # Isolated, so that no module is imported from the folder that a user happens to be in.
    command = [sys.executable, "-I", "-X", "utf8", "-c", _REHEARSAL, json.dumps(places), *files]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode == REFUSED:
        raise DatasetError(done.stderr.strip())
    if done.returncode == 1:
        raise RuntimeError(done.stderr)  # a bug of ours
    if done.returncode:
        broken = files[done.stdout.count(".")]
        raise DatasetError(f"{broken} breaks Python's unpickler: it is nested too deep")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise DatasetError(f"it names {short(f'{module}.{name}')}, which no BetaE file needs")
        return _ADMITTED[module, name]


def load(file: Path) -> dict[Any, Any]:
    """The dict in a pickle; nothing in the file is run."""
    try:
        with file.open("rb") as stream:
            content = _Unpickler(stream).load()
    except DatasetError as error:
        raise DatasetError(f"{file}: refused, for {error}; nothing was run") from None
    except FileNotFoundError:
        raise DatasetError(f"{file} is missing") from None
    # A broken pickle can make the unpickler fail in any way; none of them is a bug of ours.
    except Exception as error:
        reason = short(f"{type(error).__name__}: {error}")
        raise DatasetError(f"{file} is not a readable pickle ({reason})") from error
    if not isinstance(content, dict):
        raise DatasetError(f"{file} holds a {type(content).__name__} and not a dict")
    return content


def are(kind: type, values: Iterable[Any]) -> bool:
    return set(map(type, values)) <= {kind}
