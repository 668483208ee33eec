"""What a process writes before it is complete, and what killed processes left of that.

Its name ends in `.partial` and has the number of the process, which locks it while it lives. What a
killed process left is removed by the next one that writes the same file or folder, and an old
folder that it had moved away is put back.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

#: The ending of files and folders that are not finished, or that a finished one has replaced.
UNFINISHED = ".partial"

#: The role of an old folder while it is being replaced.
OLD = ".old"

#: The number of the process in a name.
MARK = re.compile(rf"\.(\d{{1,9}})-[0-9a-f]{{8}}(\.\w+)?{re.escape(UNFINISHED)}$")

#: Seconds after which a leftover is not taken for one that another process has just begun.
FRESH = 60.0


#: What this process writes now: a file system may have no locks.
_claimed: set[Path] = set()


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Mark a file or folder as one that this process writes while the block runs."""
    _claimed.add(path)
    try:
        yield
    finally:
        _claimed.discard(path)


def restore(folder: Path) -> None:
    """Put back an old folder, if a process was killed after it had moved that away."""
    if os.path.lexists(folder):
        return
    for old in _leftovers(folder):
        if old.name.endswith(f"{OLD}{UNFINISHED}"):
            with suppress(OSError):
                os.rename(old, folder)
            return


def remove_leftovers(target: Path) -> None:
    """Remove what killed processes left of a file or folder that they were writing."""
    _remove(_leftovers(target))


def remove_leftovers_in(folder: Path) -> None:
    """Remove what killed processes left of anything in a folder."""
    _remove(_abandoned_in(folder, "."))


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _leftovers(target: Path) -> list[Path]:
    return _abandoned_in(target.parent, f".{target.name}.")


def _abandoned_in(folder: Path, start: str) -> list[Path]:
    """What begins like this in a folder, and what nobody writes any more."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(start))
    except OSError:
        return []
    return [folder / name for name in names if _is_abandoned(folder / name)]


def _is_abandoned(path: Path) -> bool:
    """Whether a file or folder is unfinished, and no process lives that has locked it."""
    mark = MARK.search(path.name)
    if mark is None or path in _claimed:
        return False
    try:
        alive = _is_alive(int(mark[1]))
        if alive and time.time() - path.stat().st_mtime < FRESH:
            return False  # it may have been made, and not been locked yet
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # gone
        return False
    try:
        return lock(descriptor) or not alive
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def _is_alive(process: int) -> bool:
    """Whether another process of this number lives, as far as can be seen from here."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


def lock(descriptor: int) -> bool:
    """Lock an open file or folder, if its file system can; BlockingIOError if it is locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except (OSError, AttributeError):  # a file system without locks, or Windows
        return False
    return True


def aside(target: Path, role: str = "") -> Path:
    """A new name beside a file or folder, with the number of this process."""
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    return target.with_name(f".{target.name}.{mark}{role}{UNFINISHED}")
