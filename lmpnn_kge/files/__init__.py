"""Files: read if they really are files; written complete or not at all (aside, then renamed)."""

from __future__ import annotations

import ctypes
import errno
import filecmp
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from lmpnn_kge.errors import FileError, one_line, short
from lmpnn_kge.files.leftovers import (
    OLD,
    aside,
    claimed,
    lock,
    remove_leftovers,
    remove_leftovers_in,
    restore,
)

#: Bytes of the largest file of names, settings or facts.
MOST_BYTES = 1 << 30


def open_file(path: str | Path) -> BinaryIO:
    """Open a file to read; OSError for a pipe or a device, which may never begin or never end."""
    return open(path, "rb", opener=_open_regular)


def read_bytes(path: str | Path) -> bytes:
    """The content of a file that describes something; OSError if it is far too large for that."""
    with open_file(path) as stream:
        if os.fstat(stream.fileno()).st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, f"It is larger than {MOST_BYTES:,} bytes", str(path))
        return stream.read()


def read_text(path: str | Path) -> str:
    """The same as text in UTF-8, with any kind of line ends."""
    return read_bytes(path).decode().replace("\r\n", "\n").replace("\r", "\n")


def check_regular(path: str | Path) -> None:
    """OSError unless a path is a file that can be opened by others."""
    _check_mode(os.stat(path).st_mode, path)


def _open_regular(path: str, flags: int) -> int:
    # Without O_NONBLOCK, to open a pipe would wait for somebody who writes to it.
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    try:
        _check_mode(os.fstat(descriptor).st_mode, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check_mode(mode: int, path: str | Path) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "It is a pipe or a device, not a file", str(path))


def never(folder: Path) -> bool:
    """For folders that must be new."""
    return False


def check_target(folder: str | Path, may_replace: Callable[[Path], bool] = never) -> None:
    """FileError if a folder cannot be written here, or if that would destroy something else."""
    target = _resolved(folder)
    remove_leftovers_in(target)  # a process that was killed early may have left nothing else
    try:
        is_empty = target.is_dir() and not any(target.iterdir())
    except OSError as error:
        raise FileError(f"{short(str(folder))} cannot be written: {_reason(error)}") from error
    if target == Path.cwd():
        raise FileError(f"{folder} is the current folder; name a new folder")
    restore(target)
    if os.path.lexists(target) and not is_empty and not may_replace(target):
        raise FileError(f"{short(str(folder))} exists and holds something else; name a new folder")
    _check_parent(target, folder)


def check_file(file: str | Path) -> None:
    """FileError if no file can be written here, which is best known before the work."""
    if str(file).endswith(("/", os.sep)):
        raise FileError(f"{short(str(file))} ends like a folder; name a file")
    target = _resolved(file)
    if target.is_dir():
        raise FileError(f"{short(str(file))} is a folder; name a file")
    _check_parent(target, file)


def _resolved(path: str | Path) -> Path:
    try:
        target = Path(path).resolve()
        os.path.lexists(target)
        if Path(path).is_symlink() and target.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, links in a circle, NUL
        raise FileError(f"{short(str(path))} cannot be written: {_reason(error)}") from error
    if not target.name:
        raise FileError(f"{target} cannot be written: it is the root of the file system")
    return target


def _check_parent(target: Path, named: str | Path) -> None:
    """FileError if nothing can be written to the parent, or to the first one that exists."""
    parent = target.parent
    while not os.path.lexists(parent) and parent != parent.parent:
        parent = parent.parent
    remove_leftovers(parent / target.name)
    probe = aside(parent / target.name, ".probe")
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        raise FileError(f"{short(str(named))} cannot be written: {_reason(error)}") from error


@contextmanager
def atomic_folder(
    folder: Path,
    may_replace: Callable[[Path], bool] = never,
    *,
    or_same: bool = False,
) -> Iterator[Path]:
    """Yield a folder to fill, which moves to its target on success and vanishes otherwise.

    or_same accepts a target that exists with exactly the same files, and leaves it as it is.
    """
    target = _resolved(folder)
    if not (or_same and target.is_dir()):
        check_target(folder, may_replace)
    restore(target)
    remove_leftovers(target)
    new = aside(target, ".new")
    with claimed(new):
        held = None
        try:
            new.mkdir(parents=True)
            if sys.platform != "win32":  # which cannot open a folder
                held = os.open(new, os.O_RDONLY)
                lock(held)
            yield new
            if or_same and _same_files(new, target):
                return
            check_target(folder, may_replace)  # another process may have been quicker
            _replace_folder(new, target)
        except OSError as error:
            raise FileError(f"{folder} cannot be written: {_reason(error)}") from error
        finally:
            shutil.rmtree(new, ignore_errors=True)
            if held is not None:
                os.close(held)


def _replace_folder(new: Path, target: Path) -> None:
    """Move a folder to its target; an old one is then where the new one was, or is removed."""
    if not target.exists():
        os.rename(new, target)
        return
    if _exchange(new, target):
        return
    # There is a moment with no folder, and `restore` ends it if this process is killed then.
    old = aside(target, OLD)
    os.rename(target, old)
    try:
        os.rename(new, target)
    except BaseException:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, if the system can: Linux on most file systems."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2
    return not renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange)


def remove_folder(folder: Path) -> None:
    """Remove a folder so that it is whole or gone, even if this process is killed."""
    gone = aside(folder, ".gone")
    try:
        os.rename(folder, gone)
        shutil.rmtree(gone)
    except OSError as error:
        raise FileError(f"{folder} cannot be removed: {_reason(error)}") from error


def _same_files(new: Path, target: Path) -> bool:
    names = sorted(path.name for path in new.iterdir())
    if not target.is_dir():
        return False
    # Hidden files, such as a cache, are no part of what was written.
    if sorted(path.name for path in target.iterdir() if path.name[0] != ".") != names:
        return False
    equal, _, _ = filecmp.cmpfiles(new, target, names, shallow=False)
    return len(equal) == len(names)


def replace_file(content: bytes, file: Path) -> None:
    """Write a file of our own atomically, replacing whatever may be there except a folder."""
    _replace_file([content], file)


def write_file(content: bytes, file: Path) -> None:
    """Write a file that a user named atomically, replacing the one that may exist.

    Missing folders are made. A pipe or a device, such as /dev/stdout, is not replaced: the content
    goes into it.
    """
    write_parts([content], file)


def write_parts(parts: Iterable[bytes | memoryview], file: Path) -> None:
    """`write_file` for a content that is too large for the memory."""
    if not file.name:
        raise FileError(f"{file} is a folder; name a file")
    if file.exists() and not file.is_file() and not file.is_dir():
        try:
            with file.open("wb") as stream:
                stream.writelines(parts)
        except OSError as error:
            raise FileError(f"{file} cannot be written: {_reason(error)}") from error
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{short(str(file))} cannot be written: {_reason(error)}") from error
    _replace_file(parts, file)


def _replace_file(parts: Iterable[bytes | memoryview], file: Path) -> None:
    remove_leftovers(file)
    new = aside(file)
    try:
        with claimed(new), new.open("xb") as stream:
            lock(stream.fileno())
            stream.writelines(parts)
            stream.flush()
            os.fsync(stream.fileno())
            if sys.platform != "win32":  # which cannot rename an open file
                os.replace(new, file)
        if sys.platform == "win32":
            os.replace(new, file)
    except OSError as error:
        raise FileError(f"{short(str(file))} cannot be written: {_reason(error)}") from error
    finally:
        with suppress(OSError):
            new.unlink()


def _reason(error: BaseException) -> str:
    """Why the system refused: its own words, without the path that the message has already."""
    return getattr(error, "strerror", None) or one_line(error)


def relative(path: str | Path) -> Path:
    """A path as a user would type it: relative to the current folder, if it lies there."""
    path = Path(path)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """The names of different files or folders, with as many parents as make them distinct."""
    parts = [Path(os.path.realpath(path)).parts for path in paths]
    depths = range(1, max(map(len, parts)) + 1)
    candidates = (["/".join(path[-depth:]) for path in parts] for depth in depths)
    return next(names for names in candidates if len(set(names)) == len(names))


def file_hash(file: str | Path) -> str:
    """The SHA-256 of a file."""
    with open_file(file) as stream:
        digest = hashlib.sha256()
        while part := stream.read(2**20):
            digest.update(part)
    return digest.hexdigest()
