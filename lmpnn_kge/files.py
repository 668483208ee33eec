"""Files and folders that are written whole or not at all: aside first, then renamed."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lmpnn_kge.errors import DatasetError

#: How the folders end that are not finished, or that a finished one has replaced.
UNFINISHED = ".partial"


def check_place(folder: str | Path, may_replace: Callable[[Path], bool]) -> None:
    """DatasetError where writing a folder would do away with something else."""
    place = Path(folder).resolve()
    if place == Path.cwd():
        raise DatasetError(f"{folder} is the folder you are in; name a new folder")
    empty = place.is_dir() and not any(place.iterdir())
    if os.path.lexists(place) and not empty and not may_replace(place):
        raise DatasetError(f"{folder} is there and holds something else; name a new folder")


@contextmanager
def whole_folder(folder: Path, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder to write to, which takes its place when all is written and vanishes if not."""
    check_place(folder, may_replace)
    place = folder.resolve()
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    new, old = (
        place.with_name(f".{place.name}.{mark}.{what}{UNFINISHED}") for what in ("new", "old")
    )
    try:
        new.mkdir(parents=True)
        yield new
        check_place(folder, may_replace)  # for another may have been quicker
        if place.exists():
            os.rename(place, old)
        try:
            os.rename(new, place)
        except BaseException:
            if old.exists():
                os.rename(old, place)
            raise
    except OSError as error:
        raise DatasetError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def write_whole(file: Path, content: bytes) -> None:
    """Put a file in the place of the one that may be there."""
    aside = file.with_name(f".{file.name}.{os.getpid()}-{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with aside.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, file)
    except OSError as error:
        raise DatasetError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            aside.unlink()
