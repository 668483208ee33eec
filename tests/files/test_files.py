"""Files are read if they are files, and written complete or not at all; nothing else is lost."""

import os
from pathlib import Path

import pytest

from lmpnn_kge import files
from lmpnn_kge.errors import FileError
from lmpnn_kge.files import (
    atomic_folder,
    check_file,
    check_regular,
    check_target,
    distinct_names,
    open_file,
    read_bytes,
    read_text,
    relative,
    replace_file,
    write_file,
)
from lmpnn_kge.files.leftovers import UNFINISHED


def always(folder):
    return True


def never(*paths):
    """Like a file system that cannot exchange two folders."""
    return False


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def fill(folder, text, names=("file",), meanwhile=None, **options):
    """Write a folder of files with the same text, and let something happen before it appears."""
    with atomic_folder(folder, **options) as aside:
        for name in names:
            (aside / name).write_text(text)
        if meanwhile is not None:
            meanwhile()


def fails_at(call, function):
    """A function whose given call fails as if the disk were full."""
    calls = []

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) == call:
            raise OSError(28, "No space left on device")
        return function(*arguments)

    return failing


def test_a_new_or_empty_folder_may_be_written(tmp_path):
    check_target(tmp_path / "deep" / "new")
    check_target(str(tmp_path))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["folder", "file", "link"])
def test_whatever_exists_is_refused_by_name(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").touch()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with pytest.raises(FileError, match=f"{name} exists and holds something else; name a new"):
        check_target(tmp_path / name)
    check_target(tmp_path / name, always)


def test_the_caller_decides_what_may_be_replaced(tmp_path):
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    asked = []

    def is_ours(folder):
        asked.append(folder)
        return (folder / "ours").exists()

    check_target(tmp_path / "ours", is_ours)
    with pytest.raises(FileError, match="theirs exists and holds something else"):
        check_target(tmp_path / "theirs", is_ours)
    assert asked == [tmp_path / "ours", tmp_path / "theirs"]


@pytest.mark.parametrize("name", [".", "", "sub/.."])
def test_the_current_folder_is_never_a_target(here, name):
    (here / "sub").mkdir()
    with pytest.raises(FileError, match="is the current folder; name a new folder"):
        check_target(name, always)


def test_a_folder_appears_only_when_it_is_complete(tmp_path):
    with atomic_folder(tmp_path / "deep" / "folder") as aside:
        (aside / "file").write_text("content")
        assert not (tmp_path / "deep" / "folder").exists()
        assert aside.name.endswith(UNFINISHED)
        assert aside.parent == tmp_path / "deep"
    assert contents(tmp_path / "deep" / "folder") == {"file": "content"}
    assert os.listdir(tmp_path / "deep") == ["folder"]


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "folder").mkdir()
    fill(tmp_path / "folder", "content")
    assert contents(tmp_path / "folder") == {"file": "content"}
    assert os.listdir(tmp_path) == ["folder"]


def test_an_older_folder_is_replaced_with_all_its_files(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("old")
    fill(tmp_path / "folder", "new", may_replace=always)
    assert contents(tmp_path / "folder") == {"file": "new"}
    assert os.listdir(tmp_path) == ["folder"]


def test_something_else_is_refused_before_any_work(tmp_path):
    fill(tmp_path / "folder", "old")
    with pytest.raises(FileError, match="holds something else"), atomic_folder(tmp_path / "folder"):
        pytest.fail("the work began")
    assert contents(tmp_path / "folder") == {"file": "old"}


def test_a_folder_that_another_process_wrote_meanwhile_is_kept(tmp_path):
    with pytest.raises(FileError, match="holds something else"):
        fill(tmp_path / "folder", "ours", meanwhile=lambda: fill(tmp_path / "folder", "theirs"))
    assert contents(tmp_path / "folder") == {"file": "theirs"}
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_work_that_fails_leaves_the_old_folder_and_nothing_else(tmp_path, error):
    def failing():
        raise error

    fill(tmp_path / "folder", "old")
    with pytest.raises(error):
        fill(tmp_path / "folder", "half", meanwhile=failing, may_replace=always)
    assert contents(tmp_path / "folder") == {"file": "old"}
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("call", [1, 2])
def test_a_failed_rename_leaves_the_old_folder_and_is_reported_in_one_line(
    tmp_path, monkeypatch, call
):
    fill(tmp_path / "folder", "old")
    monkeypatch.setattr("lmpnn_kge.files._exchange", never)
    monkeypatch.setattr(os, "rename", fails_at(call, os.rename))
    with pytest.raises(FileError, match="folder cannot be written: No space left on device"):
        fill(tmp_path / "folder", "new", may_replace=always)
    assert contents(tmp_path / "folder") == {"file": "old"}
    assert os.listdir(tmp_path) == ["folder"]


def test_a_failed_write_inside_the_folder_is_a_file_error(tmp_path):
    with (
        pytest.raises(FileError, match="folder cannot be written: No such file or directory"),
        atomic_folder(tmp_path / "folder") as aside,
    ):
        (aside / "missing" / "file").write_text("content")
    assert os.listdir(tmp_path) == []


def test_a_folder_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileError, match="folder cannot be written: Not a directory"):
        fill(tmp_path / "file" / "folder", "content")
    assert contents(tmp_path) == {"file": "mine"}


def test_the_same_files_are_accepted_and_left_as_they_are(tmp_path):
    fill(tmp_path / "folder", "content", or_same=True)
    before = (tmp_path / "folder" / "file").stat()
    fill(tmp_path / "folder", "content", or_same=True)
    assert (tmp_path / "folder" / "file").stat() == before
    assert os.listdir(tmp_path) == ["folder"]


def test_the_same_files_are_left_as_they_are_even_if_they_could_be_replaced(tmp_path):
    fill(tmp_path / "folder", "content")
    before = (tmp_path / "folder" / "file").stat()
    fill(tmp_path / "folder", "content", may_replace=always, or_same=True)
    assert (tmp_path / "folder" / "file").stat() == before
    fill(tmp_path / "folder", "changed", may_replace=always, or_same=True)
    assert contents(tmp_path / "folder") == {"file": "changed"}


@pytest.mark.parametrize(
    "existing",
    [{"file": "changed"}, {"other": "content"}, {"file": "content", "notes": "mine"}],
    ids=["another content", "another name", "an additional file"],
)
def test_other_files_are_refused_and_kept(tmp_path, existing):
    (tmp_path / "folder").mkdir()
    for name, text in existing.items():
        (tmp_path / "folder" / name).write_text(text)
    with pytest.raises(FileError, match="folder exists and holds something else"):
        fill(tmp_path / "folder", "content", or_same=True)
    assert contents(tmp_path / "folder") == existing
    assert os.listdir(tmp_path) == ["folder"]


def test_files_are_compared_by_content_and_not_by_size_and_time(tmp_path):
    def write(text):
        with atomic_folder(tmp_path / "folder", or_same=True) as aside:
            (aside / "file").write_text(text)
            os.utime(aside / "file", (0, 0))

    write("content")
    with pytest.raises(FileError, match="holds something else"):
        write("changed")
    assert contents(tmp_path / "folder") == {"file": "content"}


def test_a_missing_file_is_not_the_same(tmp_path):
    fill(tmp_path / "folder", "content")
    with pytest.raises(FileError, match="holds something else"):
        fill(tmp_path / "folder", "content", names=("file", "second"), or_same=True)
    assert contents(tmp_path / "folder") == {"file": "content"}


def test_the_same_files_in_a_file_of_that_name_are_refused_before_any_work(tmp_path):
    (tmp_path / "folder").write_text("mine")
    with (
        pytest.raises(FileError, match="holds something else"),
        atomic_folder(tmp_path / "folder", or_same=True),
    ):
        pytest.fail("the work began")
    assert contents(tmp_path) == {"folder": "mine"}


def test_a_file_is_written_and_replaced(tmp_path):
    for content in (b"first", b"second\r\n\xff"):
        write_file(content, tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == content
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_replacement_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_file(b"old", tmp_path / "file")
    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, fails_at(1, getattr(os, function)))
            with pytest.raises(FileError, match="file cannot be written: No space left on device"):
                write_file(b"new", tmp_path / "file")
        assert contents(tmp_path) == {"file": "old"}


def test_an_interrupted_replacement_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    write_file(b"old", tmp_path / "file")
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(b"new", tmp_path / "file")
    assert contents(tmp_path) == {"file": "old"}


def test_a_file_cannot_be_written_below_a_file_or_in_place_of_a_folder(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"file/deep cannot be written: (File exists|Not a dir)"):
        write_file(b"content", tmp_path / "file" / "deep")
    with pytest.raises(FileError, match=r"folder cannot be written: Is a directory"):
        write_file(b"content", tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_folders_are_made_for_a_file_that_a_user_names_and_not_for_our_own(tmp_path):
    write_file(b"content", tmp_path / "new" / "deep" / "file")
    assert (tmp_path / "new" / "deep" / "file").read_bytes() == b"content"
    with pytest.raises(FileError, match="cannot be written: No such file or directory"):
        replace_file(b"content", tmp_path / "removed" / "state")
    assert os.listdir(tmp_path) == ["new"]


def test_a_path_in_the_current_folder_is_printed_relative_to_it(here):
    assert relative(here / "sub" / "file") == Path("sub/file")
    assert relative(str(here / "file")) == Path("file")
    assert relative("sub/file") == Path("sub/file")
    assert relative(here.parent / "file") == here.parent / "file"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/a/x"], ["x"]),
        (["/a/x", "/a/y"], ["x", "y"]),
        (["/a/x", "/b/x"], ["a/x", "b/x"]),
        (["/a/run/x", "/b/run/x", "/b/run/y"], ["a/run/x", "b/run/x", "b/run/y"]),
        (["/a/../b/x", "/c/x"], ["b/x", "c/x"]),
    ],
    ids=str,
)
def test_names_have_as_many_parents_as_make_them_distinct(paths, names):
    assert distinct_names([Path(path) for path in paths]) == names


def make_impossible(folder, way):
    """A path at which nothing can be written."""
    if way == "below a file":
        (folder / "file").write_text("mine")
        return folder / "file" / "deep" / "new"
    if way == "links in a circle":
        (folder / "link").symlink_to(folder / "link")
        return folder / "link"
    if way == "below links in a circle":
        (folder / "link").symlink_to(folder / "link")
        return folder / "link" / "new"
    if way == "the root":
        return Path("/")
    if way == "in /proc":
        return Path("/proc/new")
    return folder / ("x" * 300)


@pytest.mark.parametrize("check", [check_target, check_file])
@pytest.mark.parametrize(
    "way",
    ["below a file", "links in a circle", "below links in a circle", "in /proc", "a long name"],
)
def test_an_impossible_path_is_found_before_the_work_and_changes_nothing(tmp_path, check, way):
    path = make_impossible(tmp_path, way)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(FileError, match="cannot be written: ") as caught:
        check(path)
    assert len(str(caught.value)) < 400
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("name", ["file/", "folder", "folder/"])
def test_a_file_cannot_be_written_in_place_of_a_folder(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="name a file"):
        check_file(f"{tmp_path}/{name}")


def test_a_new_file_and_one_that_exists_may_be_written(tmp_path):
    (tmp_path / "file").touch()
    check_file(tmp_path / "file")
    check_file(tmp_path / "deep" / "file")
    assert os.listdir(tmp_path) == ["file"]


def test_folders_are_exchanged_in_one_step_where_the_system_can(tmp_path, monkeypatch):
    fill(tmp_path / "folder", "old")
    steps = []
    monkeypatch.setattr("lmpnn_kge.files._exchange", lambda *paths: steps.append(paths) or never())
    fill(tmp_path / "folder", "new", may_replace=always)
    assert [target for _, target in steps] == [tmp_path / "folder"]
    assert contents(tmp_path / "folder") == {"file": "new"}
    assert os.listdir(tmp_path) == ["folder"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(b"content", pipe)
    assert os.read(reading, 100) == b"content"
    os.close(reading)
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_the_place_of_an_own_file_is_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # to write to it would wait for a reader
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("pipe", "link"):
        replace_file(b"content", tmp_path / name)
        assert (tmp_path / name).read_bytes() == b"content"
        assert not (tmp_path / name).is_symlink()


@pytest.mark.parametrize("name", ["", "."])
def test_a_file_needs_a_name(here, name):
    with pytest.raises(FileError, match="is a folder; name a file"):
        write_file(b"content", Path(name))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_only_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        for read in (open_file, read_bytes, read_text, check_regular):
            with pytest.raises(OSError, match="a pipe or a device, not a file"):
                read(path)  # and does not wait for somebody who writes
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        check_regular(tmp_path / "nothing")


def test_text_is_read_with_any_line_ends_unless_it_is_too_large(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes("é\r\nb\rc\n".encode())
    assert read_text(file) == "é\nb\nc\n"
    monkeypatch.setattr(files, "MOST_BYTES", 7)
    with pytest.raises(OSError, match="larger than 7 bytes"):
        read_text(file)
