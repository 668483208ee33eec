"""Query stores: whole or not at all, the same bytes for the same queries, joined by name."""

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
from hypothesis import strategies as st

from lmpnn_kge.cli.queries import queries as queries_command
from lmpnn_kge.errors import DatasetError, LmpnnError
from lmpnn_kge.files import check_place
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.renumber import join_store
from lmpnn_kge.queries.store import QueryStore, is_store, write_store
from lmpnn_kge.query.formula import to_text
from lmpnn_kge.query.patterns import BETAE, EFO1, parse_pattern

from ..conftest import ROOT

ENTITIES = ["a", "b", "c", "d"]
RELATIONS = ["likes", "has part"]


def answers(*rows, costs=False):
    values = np.array([value for row in rows for value in row], np.int32)
    offsets = np.cumsum([0, *map(len, rows)])
    return Answers(offsets, values, values % 3 if costs else None)


def queries(text, constants, relations, easy, hard):
    pattern = parse_pattern(text)
    return Queries(
        pattern,
        np.array(constants, np.int32).reshape(len(easy), len(pattern.constants)),
        np.array(relations, np.int32).reshape(len(easy), len(pattern.relations)),
        answers(*easy),
        answers(*hard, costs=True),
    )


def small():
    train = {"1p": queries(BETAE["1p"], [[0], [1]], [[0], [3]], [[1, 2], [0]], [[], []])}
    test = {
        "mine/../2": queries("r1(f,e1)&f!=e1", [[]], [[1]], [[]], [[3]]),
        "2p": queries(BETAE["2p"], [[3]], [[0, 2]], [[]], [[0, 1]]),
    }
    return QueryStore("tiny", ENTITIES, RELATIONS, {"test": test, "train": train}, {"seed": 1})


def content(store):
    """All that a store says, as plain values."""
    columns = {
        (split, name): (
            str(found.pattern),
            found.constants.tolist(),
            found.relations.tolist(),
            *(
                None if column is None else column.tolist()
                for side in (found.easy, found.hard)
                for column in (side.offsets, side.values, side.costs)
            ),
        )
        for split, patterns in store.splits.items()
        for name, found in patterns.items()
    }
    return store.graph, store.entity_ids, store.relation_ids, dict(store.provenance), columns


def files(folder):
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_what_is_written_is_read(tmp_path):
    store = write_store(tmp_path / "deep" / "store", small())
    assert content(store) == content(small())
    assert list(store.splits) == ["train", "test"]
    assert list(store.splits["test"]) == ["2p", "mine/../2"]
    assert sorted(os.listdir(tmp_path / "deep")) == ["store"]


@st.composite
def stores(draw):
    splits = {}
    for split in draw(st.sets(st.sampled_from(["train", "valid", "test"]))):
        splits[split] = {}
        for name, text in draw(st.sets(st.sampled_from(sorted({**BETAE, **EFO1}.items())))):
            pattern, count = parse_pattern(text), draw(st.integers(0, 3))
            rows = st.lists(st.sets(st.integers(0, 3)).map(sorted), min_size=count, max_size=count)
            constants = draw(_table(count, len(pattern.constants), 3))
            relations = draw(_table(count, len(pattern.relations), 3))
            splits[split][name] = queries(text, constants, relations, draw(rows), draw(rows))
    return QueryStore(draw(st.text()), ENTITIES, RELATIONS, splits, {"seed": draw(st.integers())})


def _table(rows, columns, most):
    row = st.lists(st.integers(0, most), min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


@given(stores())
@settings(max_examples=40, deadline=None)
def test_any_store_is_read_as_it_was_written_and_its_bytes_do_not_vary(tmp_path_factory, store):
    folder = tmp_path_factory.mktemp("stores")
    written = write_store(folder / "one", store)
    assert content(written) == content(store)
    write_store(folder / "two", written)
    assert files(folder / "one") == files(folder / "two")


def test_columns_are_mapped_not_loaded(tmp_path):
    found = write_store(tmp_path / "store", small()).splits["test"]["2p"]
    assert isinstance(found.hard.values.base, np.memmap)
    assert not found.constants.flags.writeable


def test_names_of_any_kind_survive(tmp_path):
    names = ["Côte d'Ivoire", 'a "b"\n', "\ud800", ""]
    store = replace(small(), entity_ids=names)
    assert write_store(tmp_path / "store", store).entity_ids == names


def test_a_store_replaces_a_store(tmp_path):
    write_store(tmp_path / "store", small())
    write_store(tmp_path / "store", replace(small(), graph="other"))
    assert QueryStore.open(tmp_path / "store").graph == "other"
    assert os.listdir(tmp_path) == ["store"]


def test_a_store_may_be_written_over_itself(tmp_path):
    store = write_store(tmp_path / "store", small())
    assert content(write_store(tmp_path / "store", store)) == content(small())


@pytest.mark.parametrize("file", ["thesis.tex", "manifest.json"])
def test_a_folder_with_anything_else_is_refused_and_kept(tmp_path, file):
    (tmp_path / file).write_text('{"name": "of a browser extension"}')
    with pytest.raises(DatasetError, match="holds something else"):
        check_place(tmp_path, is_store)
    with pytest.raises(DatasetError, match="holds something else"):
        write_store(tmp_path, small())
    assert os.listdir(tmp_path) == [file]


def test_a_file_in_the_place_is_refused_and_kept(tmp_path):
    (tmp_path / "store").write_text("mine")
    with pytest.raises(DatasetError, match="holds something else"):
        write_store(tmp_path / "store", small())
    assert (tmp_path / "store").read_text() == "mine"


def test_an_unknown_split_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(DatasetError, match="did you mean 'test'"):
        write_store(tmp_path / "store", replace(small(), splits={"tset": {}}))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("failing", [1, 2])
def test_when_renaming_fails_the_old_store_stays(tmp_path, monkeypatch, failing):
    write_store(tmp_path / "store", small())
    rename, calls = os.rename, []

    def fails(source, target):
        calls.append(source)
        if len(calls) == failing:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fails)
    with pytest.raises(DatasetError, match="cannot be written: No space left"):
        write_store(tmp_path / "store", replace(small(), graph="other"))
    assert QueryStore.open(tmp_path / "store").graph == "tiny"
    assert os.listdir(tmp_path) == ["store"]


KILLED = """
import os, signal, sys
from dataclasses import replace
import numpy, json
from tests.queries.test_store import small
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
numpy.save, json.dumps, os.rename = map(dying, (numpy.save, json.dumps, os.rename))
store.write_store(sys.argv[1], replace(small(), graph="other"))
"""


@pytest.mark.parametrize("step", [1, 7, 22, 23, 24, 25, 26, 27])
def test_a_run_that_is_killed_leaves_the_old_store_or_none_and_blocks_nobody(tmp_path, step):
    write_store(tmp_path / "store", small())
    command = [sys.executable, "-c", KILLED, str(tmp_path / "store"), str(step)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    for left in tmp_path.iterdir():
        if left.name != "store":
            with pytest.raises(DatasetError, match="was stopped"):
                QueryStore.open(left)
    if (tmp_path / "store").exists():
        expected = "other" if done.returncode == 0 else "tiny"
        assert QueryStore.open(tmp_path / "store").graph == expected
    assert content(write_store(tmp_path / "store", small())) == content(small())


def edit(change):
    def damage(folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        change(manifest)
        (folder / "manifest.json").write_text(json.dumps(manifest))

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
    "a pattern that is none": (
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
    "splits that are none": (edit(lambda m: m.update(splits=[1])), "manifest.json is damaged"),
    "another split": (edit(lambda m: m["splits"].update({"../x": {}})), "no split '../x'"),
    "no names": (lambda f: (f / "entities.json").unlink(), "entities.json is damaged"),
    "names twice": (lambda f: (f / "entities.json").write_text('["a", "a"]'), "unlike 1 ('a')"),
    "names that are none": (lambda f: (f / "relations.json").write_text("[1]"), "relations.json"),
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
    write_store(tmp_path / "store", small())
    damage, words = DAMAGES[name]
    damage(tmp_path / "store")
    with pytest.raises(DatasetError) as refused:
        QueryStore.open(tmp_path / "store")
    assert words in str(refused.value)
    assert str(tmp_path / "store") in str(refused.value) or "split" in words
    assert "\n" not in str(refused.value)


def test_a_place_where_nothing_is(tmp_path):
    with pytest.raises(DatasetError, match=r"nowhere is no query store"):
        QueryStore.open(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match="damaged or missing"):
        QueryStore.open(tmp_path / ("x" * 300))


def test_an_inverse_relation_is_printed_as_the_relation_with_its_ends_exchanged():
    store = small()
    assert to_text(store.question(store.splits["train"]["1p"], 1)) == '"has part"(?, b)'
    assert to_text(store.question(store.splits["test"]["2p"], 0)) == "likes(d, ?e1) & likes(?, ?e1)"
    assert to_text(store.question(store.splits["test"]["mine/../2"], 0)) == (
        '"has part"(?, ?e1) & ? != ?e1'
    )


def test_a_store_joined_to_its_own_names_is_itself():
    store = small()
    joined, report = join_store(store, list(ENTITIES), list(RELATIONS))
    assert joined is store
    assert str(report) == "all names match"


def test_a_join_goes_by_name_and_keeps_inverses_and_costs_in_place():
    joined, report = join_store(small(), ["x", *ENTITIES[::-1]], ["new", *RELATIONS[::-1]])
    assert (report.queries, report.answers) == (0, 0)
    train = joined.splits["train"]["1p"]
    assert train.constants.tolist() == [[4], [3]]
    assert train.relations.tolist() == [[2], [4]]
    assert train.easy.of(0).tolist() == [2, 3]
    hard = joined.splits["test"]["2p"].hard
    assert (hard.values.tolist(), hard.costs.tolist()) == ([3, 4], [1, 0])


def test_a_join_drops_what_it_cannot_name_and_says_so():
    joined, report = join_store(small(), ["a", "c", "d"], RELATIONS)
    assert report.entities == ["b"]
    assert (report.queries, report.answers) == (1, 2)
    assert str(report).startswith("unknown entities: 1 ('b'); dropped: 1 queries and 2 answers")
    assert len(joined.splits["train"]["1p"]) == 1
    assert joined.splits["train"]["1p"].easy.values.tolist() == [1]
    assert joined.splits["test"]["2p"].hard.values.tolist() == [0]
    joined, report = join_store(small(), ENTITIES, ["has part"])
    assert [len(q) for found in joined.splits.values() for q in found.values()] == [1, 0, 1]


def test_a_query_that_loses_its_hard_answers_is_not_kept_for_the_easy_ones():
    found = queries(BETAE["1p"], [[0], [0]], [[0], [1]], [[1], [1]], [[2], [3]])
    store = QueryStore("tiny", ENTITIES, RELATIONS, {"test": {"1p": found}})
    joined, report = join_store(store, ["a", "b", "d"], RELATIONS)
    assert joined.splits["test"]["1p"].relations.tolist() == [[1]]
    assert report.queries == 1


@given(stores(), st.permutations(ENTITIES), st.permutations(RELATIONS))
@settings(max_examples=40, deadline=None)
def test_joined_there_and_back_answered_queries_are_the_same(store, entities, relations):
    there, _ = join_store(store, entities, relations)
    back, _ = join_store(there, ENTITIES, RELATIONS)
    again, _ = join_store(back, entities, relations)
    assert content(again) == content(there)
    for split, patterns in there.splits.items():
        for name, found in patterns.items():
            for row in range(len(found)):
                text = to_text(there.question(found, row))
                assert text == to_text(back.question(back.splits[split][name], row))


def run(*arguments):
    result = CliRunner().invoke(queries_command, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_show_counts_queries_and_answers(tmp_path):
    write_store(tmp_path / "store", small())
    lines = run("show", tmp_path / "store").splitlines()
    assert lines[1].split() == ["train", "1p", "2", "1.5", "0.0", "r1(s1,f)"]
    rows = json.loads(run("show", tmp_path / "store", "--split", "test", "--json"))
    assert rows[0] == {
        "split": "test", "type": "2p", "pattern": "r1(s1,e1)&r2(e1,f)", "queries": 1,
        "easy": 0.0, "hard": 2.0,
    }  # fmt: skip
    assert [row["split"] for row in rows] == ["test", "test"]


def test_show_prints_queries_with_their_answers(tmp_path):
    write_store(tmp_path / "store", small())
    shown = run("show", tmp_path / "store", "--split", "test", "--type", "2p", "-n", "5")
    assert shown == "test   likes(d, ?e1) & likes(?, ?e1)\n  hard  a, b\n"
    (first,) = json.loads(run("show", tmp_path / "store", "--type", "1p", "-n", "1", "--json"))
    assert first == {"split": "train", "query": "likes(a, ?)", "easy": ["b", "c"], "hard": []}


def test_show_names_what_there_is(tmp_path):
    write_store(tmp_path / "store", small())
    with pytest.raises(LmpnnError, match="no split 'tets'; did you mean 'test'"):
        run("show", tmp_path / "store", "--split", "tets")
    with pytest.raises(LmpnnError, match=r"no queries of type '3p'; .*1p, 2p"):
        run("show", tmp_path / "store", "--type", "3p")


def test_numbers_that_stand_for_nothing_are_refused(tmp_path):
    folder = write_store(tmp_path / "store", small()).folder
    values = next(iter(sorted(folder.glob("test/*.hard.values.npy"))))
    wrong = np.load(values)
    wrong[:] = 10**6
    np.save(values, wrong)
    name = values.name.split(".")[0]
    arguments = ["show", str(folder), "--split", "test", "--type", name]
    with pytest.raises(DatasetError, match="answers that are no entities"):
        CliRunner().invoke(queries_command, arguments, catch_exceptions=False)
    constants = folder / "test" / f"{name}.constants.npy"
    np.save(constants, np.load(constants) - 100)
    with pytest.raises(DatasetError, match="a number outside 0 to"):
        QueryStore.open(folder)
