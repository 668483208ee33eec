"""Files as streams of bytes: compressed or not, several by a pattern, or standard input."""

from __future__ import annotations

import glob
import gzip
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, cast

from lmpnn_kge.errors import DatasetError, one_line, short

#: The name of standard input.
STDIN = "-"

#: The endings of compressed files.
COMPRESSED = (".gz", ".zst")

#: What is raised for a damaged compressed file, by name: the package of one may be missing.
DAMAGED = ("EOFError", "BadGzipFile", "error", "ZstdError")


def find_files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that paths and patterns such as `part-*.tsv` name, in the order of their names."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found = [file for path in given for file in _matches(path)]
    repeated = {str(file) for file in found if found.count(file) > 1} if len(found) < 1000 else ()
    if repeated:
        raise DatasetError(f"{short(min(repeated))} is given twice; give each file once")
    if not found:
        raise DatasetError("no file of triples was given")
    return found


def _matches(path: str | Path) -> list[Path]:
    if os.path.lexists(path) or str(path) == STDIN or not glob.has_magic(str(path)):
        return [Path(path)]
    files = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
    files = [file for file in files if file.is_file()]
    if not files:
        raise DatasetError(f"no file matches {short(str(path))!r}")
    return files


def suffix_of(file: Path) -> str:
    """The ending that names a format, in lower case: .tsv for triples.TSV.gz."""
    inner = file.with_suffix("") if file.suffix.lower() in COMPRESSED else file
    return inner.suffix.lower()


def stem_of(file: Path) -> str:
    """The name of a file without the endings of its format and its compression."""
    inner = file.with_suffix("") if file.suffix.lower() in COMPRESSED else file
    return inner.stem


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turn whatever the system says about a file into one line with its name."""
    try:
        yield
    except DatasetError:
        raise
    except Exception as error:
        if type(error).__name__ in DAMAGED:
            raise DatasetError(f"{file} is damaged or cut short: {one_line(error)}") from error
        if not isinstance(error, OSError):
            raise
        reason = error.strerror or one_line(error)
        raise DatasetError(f"{short(str(file))} cannot be read: {reason}") from error


def open_bytes(file: Path) -> IO[bytes]:
    """Open a file to read what it holds, decompressed by its ending."""
    ending = file.suffix.lower()
    if ending == ".gz":
        return cast(IO[bytes], gzip.open(file))
    return _open_zst(file) if ending == ".zst" else file.open("rb")


def _open_zst(file: Path) -> IO[bytes]:
    """Python reads .zst by itself since 3.14; before, a package does."""
    try:
        zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "zstandard")
    except ImportError:
        raise DatasetError(
            f"{file} needs the extra zst: run `pip install 'lmpnn-kge[zst]'`, or decompress it"
        ) from None
    return io.BufferedReader(zstd.open(file, "rb"))  # the package reads no lines by itself


@contextmanager
def standard_input(suffix: str) -> Iterator[Path]:
    """Standard input as a file: some formats are read twice, and DuckDB reads files only."""
    with tempfile.TemporaryDirectory(prefix="lmpnn-kge-") as folder:
        file = Path(folder) / f"stdin{suffix}"
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield file
