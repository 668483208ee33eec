"""Files as streams of bytes: compressed or not, several by a pattern, or standard input."""

from __future__ import annotations

import glob
import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from lmpnn_kge.errors import DatasetError, one_line, short
from lmpnn_kge.files import open_file

#: The name of standard input.
STDIN = "-"

#: The endings of compressed files, and those of files that are compressed in themselves.
COMPRESSED, COLUMNAR = (".gz", ".zst"), (".parquet", ".pq")

#: Bytes that a compressed file may hold, and more for each of its own. Real graphs need 10 to 60,
#: but a few bytes can be made to expand to any number.
FREE_BYTES, RATIO = 128 << 20, 100

#: Rows likewise. Those of real graphs take two bytes each, or more.
FREE_ROWS, ROWS_PER_BYTE = 1_000_000, 2

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


def has_hole(file: Path) -> bool:
    """Whether a part of a file was never written; it reads as any number of zeros.

    False where the system does not say.
    """
    size = file.stat().st_size
    if not size or not hasattr(os, "SEEK_HOLE"):
        return False
    with file.open("rb") as opened:
        return os.lseek(opened.fileno(), 0, os.SEEK_HOLE) < size


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


def most_bytes(file: Path) -> int:
    """The bytes that a compressed file may hold."""
    return FREE_BYTES + RATIO * file.stat().st_size


def most_rows(file: Path) -> int | None:
    """The rows that a compressed file may have; None if it is not compressed."""
    if file.suffix.lower() not in (*COMPRESSED, *COLUMNAR):
        return None
    return FREE_ROWS + ROWS_PER_BYTE * file.stat().st_size


def too_many_rows(file: Path) -> DatasetError:
    return DatasetError(
        f"{file} has more than {most_rows(file):,} rows, over {ROWS_PER_BYTE} for each of its "
        "bytes; if that is right, decompress it first"
    )


def open_bytes(file: Path) -> IO[bytes]:
    """Open a file to read what it holds, decompressed by its ending."""
    stream = open_file(file)
    if file.suffix.lower() not in COMPRESSED:
        return stream
    try:
        is_gzip = file.suffix.lower() == ".gz"
        opened = gzip.GzipFile(fileobj=stream) if is_gzip else _open_zst(file, stream)
    except BaseException:
        stream.close()
        raise
    return io.BufferedReader(_Decompressed(file, stream, opened), 1 << 18)


class _Decompressed(io.RawIOBase):
    """What a compressed file holds; DatasetError if that is far more than any graph needs."""

    def __init__(self, file: Path, stream: IO[bytes], opened: Any):
        self.file, self.stream, self.opened = file, stream, opened
        self.left = self.most = most_bytes(file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self.opened.read(len(buffer))
        buffer[: len(part)] = part
        self.left -= len(part)
        if self.left < 0:
            raise DatasetError(
                f"{self.file} holds more than {self.most:,} bytes, over {RATIO} times its own "
                "size; if that is right, decompress it first"
            )
        return len(part)

    def close(self) -> None:
        self.opened.close()
        self.stream.close()
        super().close()


def _open_zst(file: Path, stream: IO[bytes]) -> Any:
    """Python reads .zst by itself since 3.14; before, a package does."""
    try:
        zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "zstandard")
    except ImportError:
        raise DatasetError(
            f"{file} needs the extra zst: run `pip install 'lmpnn-kge[zst]'`, or decompress it"
        ) from None
    return zstd.open(stream, "rb")


@contextmanager
def standard_input(suffix: str) -> Iterator[Path]:
    """Standard input as a file: some formats are read twice, and DuckDB reads files only."""
    with tempfile.TemporaryDirectory(prefix="lmpnn-kge-") as folder:
        file = Path(folder) / f"stdin{suffix}"
        with reading(Path("stdin")), file.open("wb") as copy:
            shutil.copyfileobj(_standard_input(), copy)
        yield file


def _standard_input() -> IO[bytes]:
    """Standard input, unless it is closed, or a device such as /dev/zero, which never ends."""
    if sys.stdin is None:
        raise DatasetError("stdin is closed; redirect a file to it, or name the file")
    stream = sys.stdin.buffer
    with suppress(io.UnsupportedOperation):  # of a stream in memory
        status = os.fstat(stream.fileno())
        ends = stream.isatty() or os.path.samestat(status, os.stat(os.devnull))
        if stat.S_ISCHR(status.st_mode) and not ends:
            raise DatasetError(
                "stdin is a device; redirect a file, or the output of a program, to it"
            )
    return stream
