"""Query stores: complete or not at all, and the same bytes for the same queries."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings

from lmpnn_kge.cli.queries import queries as queries_command
from lmpnn_kge.errors import DatasetError, FileError, LmpnnError, QueryError
from lmpnn_kge.files import check_target
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries import store as store_module
from lmpnn_kge.queries.store import QueryStore, is_store, write_store

from ..conftest import ROOT
from ..edited import edit_json
from .tiny_stores import RELATIONS, content, small, stores


def files(folder):
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_a_store_is_read_as_it_was_written(tmp_path):
    store = write_store(small(), tmp_path / "deep" / "store")
    assert content(store) == content(small())
    assert list(store.splits) == ["train", "test"]
    assert list(store.splits["test"]) == ["2p", "mine/../2"]
    assert sorted(os.listdir(tmp_path / "deep")) == ["store"]


@given(stores())
@settings(max_examples=40, deadline=None)
def test_any_store_is_read_as_it_was_written_and_always_has_the_same_bytes(tmp_path_factory, store):
    folder = tmp_path_factory.mktemp("stores")
    written = write_store(store, folder / "one")
    assert content(written) == content(store)
    write_store(written, folder / "two")
    assert files(folder / "one") == files(folder / "two")


def test_columns_are_mapped_and_not_loaded(tmp_path):
    queries = write_store(small(), tmp_path / "store").queries("test")["2p"]
    assert isinstance(queries.hard.values.base, np.memmap)
    assert not queries.constants.flags.writeable


def test_columns_are_checked_once_per_store_and_not_on_every_access(tmp_path, monkeypatch):
    write_store(small(), tmp_path / "store")
    calls = {"_check": 0, "_map_array": 0}

    def count(name):
        function = getattr(store_module, name)

        def counted(*arguments):
            calls[name] += 1
            return function(*arguments)

        monkeypatch.setattr(store_module, name, counted)

    for name in calls:
        count(name)
    store = QueryStore.open(tmp_path / "store")
    assert calls["_check"] == 3
    mapped = calls["_map_array"]
    for _ in range(2):
        assert content(store) == content(small())
    assert calls["_map_array"] > mapped  # nobody held the columns, so they were mapped again
    assert calls["_check"] == 3
    QueryStore.open(tmp_path / "store")
    assert calls["_check"] == 6


def test_columns_that_are_in_use_are_not_mapped_again(tmp_path):
    patterns = write_store(small(), tmp_path / "store").queries("test")
    queries = patterns["2p"]
    assert patterns["2p"] is queries


def test_any_text_may_be_a_name(tmp_path):
    names = ["Côte d'Ivoire", 'a "b"\n', "\ud800", ""]
    store = replace(small(), vocabulary=Vocabulary(names, RELATIONS))
    assert write_store(store, tmp_path / "store").vocabulary.entity_ids == names


def test_an_unknown_split_is_refused_with_the_known_ones(tmp_path):
    store = write_store(small(), tmp_path / "store")
    assert list(store.queries("train")) == ["1p"]
    with pytest.raises(QueryError, match=r"store has no split 'tset'; did you mean 'test'\?"):
        store.queries("tset")
    with pytest.raises(QueryError, match=r"no split 'valid'; choose from: test, train$"):
        store.queries("valid")


def test_a_repr_is_one_line_with_the_numbers_of_queries(tmp_path):
    store = write_store(small(), tmp_path / "store")
    assert repr(store) == "QueryStore(tiny: 2 train, 2 test queries)"
    assert len(store) == 4


def test_a_store_replaces_a_store(tmp_path):
    write_store(small(), tmp_path / "store")
    write_store(replace(small(), graph="other"), tmp_path / "store")
    assert QueryStore.open(tmp_path / "store").graph == "other"
    assert os.listdir(tmp_path) == ["store"]


def test_a_store_may_be_written_over_itself(tmp_path):
    store = write_store(small(), tmp_path / "store")
    assert content(write_store(store, tmp_path / "store")) == content(small())


@pytest.mark.parametrize("file", ["thesis.tex", "manifest.json"])
def test_a_folder_of_other_files_is_refused_and_kept(tmp_path, file):
    (tmp_path / file).write_text('{"name": "of a browser extension"}')
    with pytest.raises(FileError, match="holds something else"):
        check_target(tmp_path, is_store)
    with pytest.raises(FileError, match="holds something else"):
        write_store(small(), tmp_path)
    assert os.listdir(tmp_path) == [file]


def test_a_file_of_that_name_is_refused_and_kept(tmp_path):
    (tmp_path / "store").write_text("mine")
    with pytest.raises(FileError, match="holds something else"):
        write_store(small(), tmp_path / "store")
    assert (tmp_path / "store").read_text() == "mine"


def test_an_unknown_split_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(DatasetError, match="did you mean 'test'"):
        write_store(replace(small(), splits={"tset": {}}), tmp_path / "store")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("failing", [1, 2])
def test_if_renaming_fails_the_old_store_stays(tmp_path, monkeypatch, failing):
    write_store(small(), tmp_path / "store")
    rename, calls = os.rename, []

    def fails(source, target):
        calls.append(source)
        if len(calls) == failing:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr("lmpnn_kge.files._exchange", lambda one, other: False)
    monkeypatch.setattr(os, "rename", fails)
    with pytest.raises(FileError, match="cannot be written: No space left"):
        write_store(replace(small(), graph="other"), tmp_path / "store")
    assert QueryStore.open(tmp_path / "store").graph == "tiny"
    assert os.listdir(tmp_path) == ["store"]


KILLED = """
import os, pathlib, signal, sys
from dataclasses import replace
import numpy
from tests.queries.tiny_stores import small
from lmpnn_kge.queries import store
steps = int(sys.argv[2])
def dying(function):
    def step(*arguments, **options):
        global steps
        steps -= 1
        if steps == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return step
numpy.save, os.rename = dying(numpy.save), dying(os.rename)
for name in ("write_bytes", "write_text"):
    setattr(pathlib.Path, name, dying(getattr(pathlib.Path, name)))
store.write_store(replace(small(), graph="other"), sys.argv[1])
"""


@pytest.mark.parametrize("step", [1, 7, 22, 23, 24, 25, 26, 27])
def test_a_killed_process_leaves_the_old_store_or_none_and_blocks_nobody(tmp_path, step):
    write_store(small(), tmp_path / "store")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "store"), str(step)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    for left in tmp_path.iterdir():
        if left.name != "store":
            with pytest.raises(DatasetError, match="left by a process that was stopped"):
                QueryStore.open(left)
    if (tmp_path / "store").exists():
        expected = "other" if done.returncode == 0 else "tiny"
        assert QueryStore.open(tmp_path / "store").graph == expected
    assert content(write_store(small(), tmp_path / "store")) == content(small())


def edit(change):
    def damage(folder):
        edit_json(folder / "manifest.json", change)

    return damage


def cut(name, size):
    return lambda folder: os.truncate(folder / name, size)


def save(name, array):
    return lambda folder: np.save(folder / name, array, allow_pickle=True)


DAMAGES = {
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "it has no manifest.json"),
    "half a manifest": (cut("manifest.json", 100), "manifest.json is damaged"),
    "another format": (edit(lambda m: m.update(format=2)), "of format 2, but this version reads"),
    "no graph": (edit(lambda m: m.pop("graph")), "manifest.json is damaged"),
    "no pattern": (edit(lambda m: m["splits"]["test"]["2p"].pop("pattern")), "'pattern'"),
    "a pattern that cannot be read": (
        edit(lambda m: m["splits"]["test"]["2p"].update(pattern="r1(s1")),
        "manifest.json is damaged",
    ),
    "another pattern": (
        edit(lambda m: m["splits"]["test"]["2p"].update(pattern="r1(s1,f)")),
        "1 queries have relations [1, 2]",
    ),
    "an array that is not listed": (
        edit(lambda m: m["splits"]["test"]["2p"]["arrays"].pop("easy.values")),
        "2p.*.npy is damaged or missing: 'easy.values'",
    ),
    "splits in a list": (edit(lambda m: m.update(splits=[1])), "manifest.json is damaged"),
    "another split": (edit(lambda m: m["splits"].update({"../x": {}})), "no split '../x'"),
    "no names": (lambda f: (f / "entities.json").unlink(), "entities.json is damaged"),
    "names twice": (
        lambda f: (f / "entities.json").write_text('["a", "a"]'),
        "these repeat: 1 ('a')",
    ),
    "names that are numbers": (
        lambda f: (f / "relations.json").write_text("[1]"),
        "relations.json is damaged or missing: ids must be strings",
    ),
    "no array": (lambda f: (f / "test/2p.constants.npy").unlink(), "2p.constants.npy is damaged"),
    "an empty array": (cut("test/2p.constants.npy", 0), "2p.constants.npy is damaged"),
    "half a header": (cut("test/2p.constants.npy", 50), "2p.constants.npy is damaged"),
    "half an array": (cut("test/2p.hard.values.npy", 132), "2p.hard.values.npy is damaged"),
    "another type": (
        save("test/2p.hard.values.npy", np.zeros(2, np.int64)),
        "int64 [2] and not int32 [2]",
    ),
    "another shape": (save("test/2p.hard.values.npy", np.zeros(3, np.int32)), "int32 [3] and not"),
    "objects": (save("test/2p.hard.values.npy", np.array([{}, {}])), "2p.hard.values.npy"),
    "other offsets": (
        save("test/2p.hard.offsets.npy", np.array([0, 3])),
        "the hard offsets do not fit the values",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_store_does_not_open(tmp_path, name):
    write_store(small(), tmp_path / "store")
    damage, words = DAMAGES[name]
    damage(tmp_path / "store")
    with pytest.raises(DatasetError) as refused:
        QueryStore.open(tmp_path / "store")
    assert words in str(refused.value)
    assert str(tmp_path / "store") in str(refused.value) or "split" in words
    assert "\n" not in str(refused.value)


def test_a_missing_folder_is_not_a_query_store(tmp_path):
    assert not is_store(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match=r"nowhere is not a query store: it has no manifest"):
        QueryStore.open(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match="damaged or missing"):
        QueryStore.open(tmp_path / ("x" * 300))


def test_an_inverse_relation_is_printed_as_the_relation_with_its_ends_exchanged():
    store = small()
    assert str(store.question(store.splits["train"]["1p"], 1)) == '"has part"(?, b)'
    assert str(store.question(store.splits["test"]["2p"], 0)) == "likes(d, ?e1) & likes(?, ?e1)"
    assert str(store.question(store.splits["test"]["mine/../2"], 0)) == (
        '"has part"(?, ?e1) & ? != ?e1'
    )


def run(*arguments):
    result = CliRunner().invoke(queries_command, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_show_counts_queries_and_answers(tmp_path):
    write_store(small(), tmp_path / "store")
    lines = run("show", tmp_path / "store").splitlines()
    assert lines[1].split() == ["train", "1p", "2", "1.5", "0.0", "r1(s1,f)"]
    rows = json.loads(run("show", tmp_path / "store", "--split", "test", "--json"))
    assert rows[0] == {
        "split": "test", "type": "2p", "pattern": "r1(s1,e1)&r2(e1,f)", "queries": 1,
        "easy": 0.0, "hard": 2.0,
    }  # fmt: skip
    assert [row["split"] for row in rows] == ["test", "test"]


def test_show_prints_queries_with_their_answers(tmp_path):
    write_store(small(), tmp_path / "store")
    shown = run("show", tmp_path / "store", "--split", "test", "--type", "2p", "-n", "5")
    assert shown == "test   likes(d, ?e1) & likes(?, ?e1)\n  hard  a, b\n"
    (first,) = json.loads(run("show", tmp_path / "store", "--type", "1p", "-n", "1", "--json"))
    assert first == {"split": "train", "query": "likes(a, ?)", "easy": ["b", "c"], "hard": []}


def test_show_lists_the_splits_and_types_of_the_store(tmp_path):
    write_store(small(), tmp_path / "store")
    with pytest.raises(LmpnnError, match="no split 'tets'; did you mean 'test'"):
        run("show", tmp_path / "store", "--split", "tets")
    with pytest.raises(LmpnnError, match=r"no queries of type '3p'; .*1p, 2p"):
        run("show", tmp_path / "store", "--type", "3p")


def test_numbers_that_name_nothing_are_refused(tmp_path):
    folder = write_store(small(), tmp_path / "store").folder
    values = next(iter(sorted(folder.glob("test/*.hard.values.npy"))))
    wrong = np.load(values)
    wrong[:] = 10**6
    np.save(values, wrong)
    name = values.name.split(".")[0]
    arguments = ["show", str(folder), "--split", "test", "--type", name]
    with pytest.raises(DatasetError, match="is damaged: its checksum"):
        CliRunner().invoke(queries_command, arguments, catch_exceptions=False)
    constants = folder / "test" / f"{name}.constants.npy"
    np.save(constants, np.load(constants) - 100)
    with pytest.raises(DatasetError, match="a number outside 0 to"):
        QueryStore.open(folder)


def test_a_store_with_more_patterns_than_files_may_be_open_opens(tmp_path):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    (queries,) = list(small().splits["test"].values())[:1]
    patterns = {f"type {number}": queries for number in range(40)}
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        store = write_store(replace(small(), splits={"test": patterns}), tmp_path / "store")
        assert len(store) == 40 * len(queries)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def without_checksums(folder):
    """A store as older versions wrote it."""
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["names"], manifest["checksum"]
    for patterns in manifest["splits"].values():
        for entry in patterns.values():
            del entry["sha256"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def every_array(folder):
    return sorted(folder.rglob("*.npy"))


def test_a_changed_number_in_any_array_is_found_when_the_array_is_used(tmp_path):
    folder = write_store(small(), tmp_path / "store").folder
    for file in every_array(folder):
        sound = file.read_bytes()
        if len(np.load(file)):
            file.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
            with pytest.raises(DatasetError, match=f"{file.name}|outside|do not fit"):
                QueryStore.open(folder).verify()
            file.write_bytes(sound)
    assert QueryStore.open(folder).verify() == len(every_array(folder))


def test_damage_is_found_by_whoever_uses_a_pattern_and_not_by_opening_its_store(tmp_path):
    folder = write_store(small(), tmp_path / "store").folder
    file = next(f for f in every_array(folder) if "values" in f.name and len(np.load(f)) > 1)
    values = np.load(file)
    np.save(file, values[::-1])
    split, name = file.parent.name, file.name.partition(".")[0]
    store = QueryStore.open(folder)
    assert len(store) == len(small())
    with pytest.raises(DatasetError, match="is damaged: its checksum is not that of"):
        store.queries(split)[name]


def test_changed_names_are_found(tmp_path):
    folder = write_store(small(), tmp_path / "store").folder
    names = json.loads((folder / "entities.json").read_text())
    (folder / "entities.json").write_text(json.dumps(names[::-1], indent=0))
    with pytest.raises(DatasetError, match=r"entities.json is damaged: its checksum"):
        QueryStore.open(folder)


def test_a_store_of_an_older_version_is_read_without_checksums(tmp_path):
    folder = without_checksums(write_store(small(), tmp_path / "store").folder)
    assert QueryStore.open(folder).verify() == 0
    result = CliRunner().invoke(queries_command, ["verify", str(folder)])
    assert result.exit_code == 0
    assert "no damage found" in result.stdout
    assert "no checksums" in result.stderr


@pytest.mark.parametrize("change", ["fall", "negative", "too large"])
def test_impossible_answers_of_an_older_store_are_found(tmp_path, change):
    folder = without_checksums(write_store(small(), tmp_path / "store").folder)
    column = "offsets" if change == "fall" else "values"
    file = next(f for f in every_array(folder) if column in f.name and len(np.load(f)) > 2)
    array = np.load(file)
    array[1] = {"fall": array[-1] + 5, "negative": -1, "too large": 10**6}[change]
    np.save(file, array)
    with pytest.raises(DatasetError, match="damaged"):
        QueryStore.open(folder).verify()


@pytest.mark.parametrize(
    "header",
    [b"{'descr': '<i4', 'shape': (", b"\x00" * 20, b"{'a': }", b"((((" * 40, b"'" * 7, b"\xff\xfe"],
)
def test_a_header_that_numpy_cannot_parse_is_damage(tmp_path, header):
    folder = write_store(small(), tmp_path / "store").folder
    file = every_array(folder)[0]
    start = file.read_bytes()[:8]
    file.write_bytes(start + len(header).to_bytes(2, "little") + header + bytes(64))
    with pytest.raises(DatasetError, match="damaged or missing: it is not an array"):
        QueryStore.open(folder)
