"""Disks that fail: full, really too small, or with an operation that goes wrong once."""

import ctypes
import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from .campaign import Outcome, Steps
from .counted import Ended, start, wait_counted
from .kills import FINAL, Kills, check_refused

#: What can go wrong with a file besides a full disk.
ERRORS = ("EIO", "EACCES", "EROFS", "EDQUOT", "EMFILE", "ESTALE", "EFBIG")

#: Flags of Linux's `unshare`, and of `mount`.
NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
RECURSIVE, PRIVATE = 1 << 14, 1 << 18

#: The folder of temporary files on a small disk.
TEMPORARY = "temporary"

#: Bytes of a block of a file system in memory.
BLOCK = 4096


class FullDisk(Kills):
    """A disk that is full from an operation on, as far as Python writes."""

    name = "full-disk"
    mode = "full"
    weight = 3

    def check_ended(self, ended: Ended) -> None:
        check_refused(ended)


class FileErrors(FullDisk):
    """One operation fails, also one that reads; the disk works before and after."""

    name = "file-errors"
    mode = "error"
    weight = 2

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        ((name, place),) = super().draw(number, random, inputs)
        return [[name, place, random.choice(ERRORS)]]

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        ((name, place, error),) = steps
        self.mode = f"error {getattr(errno, error)}"
        return super().run([[name, place]], inputs, scratch)


class SmallDisk(FullDisk):
    """A file system of a few blocks, which also stops DuckDB and SQLite, and which then grows."""

    name = "small-disk"

    def count(self, inputs: Path) -> int | None:
        return None if may_mount() else 0

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        name = random.choice(list(self.jobs(inputs)))
        return [[name, int(2 ** random.uniform(1, 9))]]

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        ((name, blocks),) = steps
        with small_disk(scratch) as resize:
            self.before(name, inputs, scratch)
            resize(blocks)
            job = [str(part) for part in self.jobs(inputs)[name]]
            log = inputs.parent / f"{scratch.name}.log"
            ended = wait_counted(start(job, scratch, log, lambda: keep_temporary_files(scratch)))
            self.check_ended(ended)
            shutil.rmtree(scratch / TEMPORARY)
            resize(0)
            self.run_again(name, inputs, scratch, must=ended.code != 0 or name not in FINAL)
        return ended.outcome


def keep_temporary_files(folder: Path) -> None:
    """Let this process write its temporary files to the same disk."""
    (folder / TEMPORARY).mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder / TEMPORARY)


@contextmanager
def small_disk(folder: Path) -> Iterator[Any]:
    """Mount a file system in memory that only this process and its children see."""
    own_mounts()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)

    def resize(blocks: int) -> None:
        """Leave so many blocks free; 0 for no limit."""
        used = os.statvfs(folder)
        size = (used.f_blocks - used.f_bfree + blocks) * BLOCK if blocks else 1 << 30
        subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)

    try:
        yield resize
    finally:  # the process may be in it
        subprocess.run(["umount", "--lazy", folder], check=True)


@cache
def own_mounts() -> None:
    """Let this process see mounts of its own; OSError if the system forbids that."""
    user, group = os.getuid(), os.getgid()
    system = ctypes.CDLL(None, use_errno=True)

    def call(result: int) -> None:
        if result:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    call(system.unshare(NEW_MOUNTS if user == 0 else NEW_MOUNTS | NEW_USER))
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    call(system.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None))


def may_mount() -> bool:
    """Whether the system lets a process have mounts of its own; another process tries it."""
    child = os.fork()
    if not child:
        try:
            own_mounts()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0
