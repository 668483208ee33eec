"""Atomic writes: a file or folder appears complete or not at all (write aside, then rename)."""

from __future__ import annotations

import filecmp
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lmpnn_kge.errors import FileError, one_line, short

#: The ending of files and folders that are not finished, or that a finished one has replaced.
UNFINISHED = ".partial"


def never(folder: Path) -> bool:
    """For folders that must be new."""
    return False


def check_target(folder: str | Path, may_replace: Callable[[Path], bool] = never) -> None:
    """FileError if writing a folder here would destroy something else."""
    try:
        target = Path(folder).resolve()
        is_empty = target.is_dir() and not any(target.iterdir())
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, links in a circle, NUL
        raise FileError(f"{short(str(folder))} cannot be written: {one_line(error)}") from error
    if target == Path.cwd():
        raise FileError(f"{folder} is the current folder; name a new folder")
    if os.path.lexists(target) and not is_empty and not may_replace(target):
        raise FileError(f"{folder} exists and holds something else; name a new folder")


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
    if not (or_same and folder.is_dir()):
        check_target(folder, may_replace)
    target = folder.resolve()
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    new, old = (
        target.with_name(f".{target.name}.{mark}.{role}{UNFINISHED}") for role in ("new", "old")
    )
    try:
        new.mkdir(parents=True)
        yield new
        if or_same and _same_files(new, target):
            return
        check_target(folder, may_replace)  # another process may have been quicker
        if target.exists():
            os.rename(target, old)
        try:
            os.rename(new, target)
        except BaseException:
            if old.exists():
                os.rename(old, target)
            raise
    except OSError as error:
        raise FileError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _same_files(new: Path, target: Path) -> bool:
    names = sorted(path.name for path in new.iterdir())
    if not target.is_dir():
        return False
    # Hidden files, such as a cache, are no part of what was written.
    if sorted(path.name for path in target.iterdir() if path.name[0] != ".") != names:
        return False
    equal, _, _ = filecmp.cmpfiles(new, target, names, shallow=False)
    return len(equal) == len(names)


def write_file(content: bytes, file: Path) -> None:
    """Write a file atomically, replacing the one that may exist."""
    aside = file.with_name(f".{file.name}.{os.getpid()}-{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with aside.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, file)
    except OSError as error:
        raise FileError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            aside.unlink()


def relative(path: str | Path) -> Path:
    """A path as a user would type it: relative to the current folder, if it lies there."""
    path = Path(path)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """The names of different files or folders, with as many parents as make them distinct."""
    parts = [path.resolve().parts for path in paths]
    depths = range(1, max(map(len, parts)) + 1)
    candidates = (["/".join(path[-depth:]) for path in parts] for depth in depths)
    return next(names for names in candidates if len(set(names)) == len(names))
