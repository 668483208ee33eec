"""Pickles of plain containers, read without running anything that is in them.

A pickle may name only the containers below. A separate process loads it first, because a pickle can
crash CPython's unpickler in ways that no check beforehand would notice.
"""

from __future__ import annotations

import gc
import json
import pickle
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import DatasetError, short
from lmpnn_kge.files import open_file

# Only types that cannot be changed, neither by the pickle nor by anything else.
_ADMITTED = {
    (module, container.__name__): container
    for module in ("builtins", "__builtin__")
    for container in (set, frozenset, dict, list)
} | {("collections", "defaultdict"): defaultdict}

#: Memory that loading may take, in bytes: per byte that the file holds, and in any case.
MEMORY = 64, 1 << 30

#: Seconds of computing that loading may take: per megabyte, and in any case. Python reads about 50
#: MB in a second, but a few nested tuples can take years to hash.
SECONDS = 1, 3

#: The exit code of a process that has refused a file.
REFUSED = 3

_REHEARSAL = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from lmpnn_kge.graph.formats.safe_pickle import rehearse
rehearse(sys.argv[2:])
"""


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn garbage collection off: for many objects, the search takes longer than making them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@uncollected()
def rehearse(files: Sequence[str]) -> None:
    """Load pickles in this process, under tight limits: whatever passes here passes anywhere."""
    try:
        import resource
    except ImportError:  # not on Windows
        pass
    else:
        stats = [Path(file).stat() for file in files]
        # A file may claim any size, but what it holds takes room on the disk, in blocks of 512.
        sizes = [min(stat.st_size, 512 * stat.st_blocks) for stat in stats]
        memory = MEMORY[1] + MEMORY[0] * max(sizes)
        seconds = SECONDS[1] + SECONDS[0] * (sum(sizes) >> 20)
        for limit, value in (
            (resource.RLIMIT_STACK, 1 << 20),
            (resource.RLIMIT_AS, memory),
            (resource.RLIMIT_CPU, seconds),
        ):
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
    """Load the pickles that exist in another process; DatasetError names the one that breaks it."""
    paths = [folder / f"{name}.pkl" for name in names]
    files = [str(path) for path in paths if path.is_file()]
    if not files:
        return
    paths_to_import = [str(Path(__file__).parents[3]), *filter(None, sys.path)]
    # Isolated, so that no module is imported from the user's current folder.
    command = [
        sys.executable,
        "-I",
        "-X",
        "utf8",
        "-c",
        _REHEARSAL,
        json.dumps(paths_to_import),
        *files,
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode == REFUSED:
        raise DatasetError(done.stderr.strip())
    if done.returncode == 1:
        raise RuntimeError(done.stderr)  # a bug of ours
    if done.returncode:
        broken = files[done.stdout.count(".")]
        if -done.returncode in (getattr(signal, "SIGXCPU", 0), getattr(signal, "SIGKILL", 0)):
            raise DatasetError(f"{broken} takes longer to read than any file of its size should")
        raise DatasetError(f"{broken} breaks Python's unpickler: it is nested too deep")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise DatasetError(f"it names {short(f'{module}.{name}')}, which no BetaE file needs")
        return _ADMITTED[module, name]


def load(file: Path) -> dict[Any, Any]:
    """The dict in a pickle; nothing in the file is run."""
    try:
        with open_file(file) as stream:
            content = _Unpickler(stream).load()
    except DatasetError as error:
        raise DatasetError(f"{file}: refused because {error}; nothing was run") from None
    except FileNotFoundError:
        raise DatasetError(f"{file} is missing") from None
    except MemoryError:
        raise DatasetError(f"{file} would take far more memory than its own size") from None
    # A broken pickle can make the unpickler fail in any way; none of them is a bug of ours.
    except Exception as error:
        reason = short(f"{type(error).__name__}: {error}")
        raise DatasetError(f"{file} is not a readable pickle ({reason})") from error
    if not isinstance(content, dict):
        raise DatasetError(f"{file} holds a {type(content).__name__} and not a dict")
    return content


def are(type_: type, values: Iterable[Any]) -> bool:
    """Whether all values are of exactly this type."""
    return set(map(type, values)) <= {type_}
