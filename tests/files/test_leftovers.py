"""What a killed process left is removed, or put back, by the next one; nothing else is touched."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from lmpnn_kge.errors import FileError
from lmpnn_kge.files import atomic_folder, check_target, remove_folder, write_file
from lmpnn_kge.files.leftovers import aside, lock, remove_leftovers, remove_leftovers_in, restore

#: Writes or replaces folder/file, and is killed at the given call of a function of `os`.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from lmpnn_kge import files
folder, function, call = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if sys.argv[4] == "two steps":
    files._exchange = lambda one, other: False
original, calls = getattr(os, function), []

def killed(*arguments, **options):
    calls.append(arguments)
    if len(calls) == call:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **options)

setattr(os, function, killed)
with files.atomic_folder(folder, may_replace=lambda folder: True) as aside:
    (aside / "file").write_text("new")
files.write_file(b"content", folder / "other")
"""


def killed_at(folder, function, call, way="one step"):
    command = [sys.executable, "-c", PROGRAM, folder, function, str(call), way]
    return subprocess.run([str(part) for part in command]).returncode


def names(folder):
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("call", [1, 2])
def test_a_kill_while_a_folder_is_replaced_in_two_steps_loses_nothing(tmp_path, call):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("old")
    assert killed_at(folder, "rename", call, "two steps") == -signal.SIGKILL
    restore(folder)
    assert (folder / "file").read_text() == "old"
    remove_leftovers(folder)
    assert names(tmp_path) == ["folder"]


@pytest.mark.parametrize(
    ("function", "call"),
    [("mkdir", 1), ("mkdir", 2), ("open", 1), ("rmdir", 1), ("replace", 1), ("fsync", 1)],
)
def test_a_kill_leaves_nothing_after_the_next_writer(tmp_path, function, call):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("old")
    assert killed_at(folder, function, call) == -signal.SIGKILL
    assert (folder / "file").read_text() in ("old", "new")
    with atomic_folder(folder, may_replace=lambda folder: True) as new:
        (new / "file").write_text("newer")
    write_file(b"content", folder / "other")
    assert names(tmp_path) == ["folder"]
    assert names(folder) == ["file", "other"]


def test_what_a_living_process_writes_is_left_alone(tmp_path):
    ours, theirs = aside(tmp_path / "file"), tmp_path / f".file.{os.getppid()}-0123abcd.partial"
    for path in (ours, theirs):
        path.touch()
    with ours.open() as stream:
        lock(stream.fileno())
        remove_leftovers(tmp_path / "file")
        assert names(tmp_path) == sorted([ours.name, theirs.name])
    remove_leftovers(tmp_path / "file")
    assert names(tmp_path) == [theirs.name]
    os.utime(theirs, (0, 0))  # long ago, and nobody has locked it: another process has this number
    remove_leftovers(tmp_path / "file")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [".other.1-0123abcd.partial", "file.partial", ".file.partial", ".file.x-0123abcd.partial",
     ".file.1-0123abcd.partial.txt", ".file.99999999999999999999-0123abcd.partial"],
)  # fmt: skip
def test_names_that_are_not_ours_are_left_alone(tmp_path, name):
    (tmp_path / name).touch()
    remove_leftovers(tmp_path / "file")
    assert names(tmp_path) == [name]


def test_all_leftovers_in_a_folder_are_removed(tmp_path):
    gone = 999_999_999
    (tmp_path / f".a.{gone}-0123abcd.partial").touch()
    (tmp_path / f".b.{gone}-0123abcd.new.partial").mkdir()
    (tmp_path / f".b.{gone}-0123abcd.new.partial" / "file").touch()
    (tmp_path / "kept").touch()
    remove_leftovers_in(tmp_path)
    assert names(tmp_path) == ["kept"]


def test_a_folder_that_holds_nothing_but_leftovers_may_be_used(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / ".table.json.999999999-00000000.partial").write_text("{")
    check_target(folder)
    assert list(folder.iterdir()) == []


def test_an_old_folder_is_put_back_only_if_there_is_no_new_one(tmp_path):
    gone = 999_999_999
    old = tmp_path / f".folder.{gone}-0123abcd.old.partial"
    old.mkdir()
    (tmp_path / "folder").mkdir()
    restore(tmp_path / "folder")
    assert names(tmp_path) == [old.name, "folder"]
    (tmp_path / "folder").rmdir()
    restore(tmp_path / "folder")
    assert names(tmp_path) == ["folder"]


def test_a_folder_is_removed_whole(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        with suppress(KeyboardInterrupt):
            remove_folder(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    remove_leftovers(tmp_path / "folder")
    assert names(tmp_path) == []


def test_a_missing_folder_cannot_be_removed(tmp_path):
    with pytest.raises(FileError, match="folder cannot be removed: No such file"):
        remove_folder(tmp_path / "folder")


def test_a_file_system_without_locks_keeps_what_this_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("lmpnn_kge.files.leftovers.fcntl", None)
    for text in ("old", "new"):
        with atomic_folder(tmp_path / "folder", may_replace=lambda folder: True) as new:
            (new / "file").write_text(text)
            remove_leftovers(tmp_path / "folder")
    assert (tmp_path / "folder" / "file").read_text() == "new"
    assert names(tmp_path) == ["folder"]
