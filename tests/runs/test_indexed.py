"""Approximate answers: candidates of an index with exact scores, and an index that is trusted."""

import json

import numpy as np
import pytest
import torch

from lmpnn_kge import Run
from lmpnn_kge.backbones import mapped
from lmpnn_kge.errors import ConfigError, FileError, LmpnnError
from lmpnn_kge.methods import index as index_module
from lmpnn_kge.methods.vectors import Vectors
from lmpnn_kge.runs import best, indexed
from lmpnn_kge.runs.best import best_by_index, best_in_blocks
from lmpnn_kge.work.listener import Listener

from ..toy_runs import cli, options, random_inputs

pytest.importorskip("usearch", reason="needs the extra index")

ENTITIES, RELATIONS, DIM, LIMIT = 700, 4, 16, "64KB"
FORMULA = "r0(e1, ?) | r1(e2, ?)"


class Notes(Listener):
    """Remembers notes."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = tmp_path_factory.mktemp("indexed")
    random_inputs(place, ENTITIES, RELATIONS, DIM)
    cli(
        *("train", "--checkpoint", place / "file.safetensors", "--queries", place / "queries"),
        *("--dataset", place / "graph", "--out", place / "run", *options()),
    )
    return place / "run"


@pytest.fixture
def run(trained, tmp_path, monkeypatch):
    """A run with its table in the file, and no index yet."""
    monkeypatch.setattr(mapped, "LARGE", 20_000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (trained / indexed.RECALL).unlink(missing_ok=True)
    return Run.open(trained, table_memory=LIMIT)


def approximate(run, formula=FORMULA, **wanted):
    """Answers and notes."""
    listener = Notes()
    reopened = Run.open(run.folder.path, table_memory=LIMIT)
    answers = reopened.ask(formula, approximate=True, listener=listener, **wanted)
    return answers, "\n".join(listener.notes)


def test_candidates_have_the_scores_and_the_order_of_exact_answers(run):
    answers, notes = approximate(run, k=20)
    exact = run.ask(FORMULA, 20, method="lmpnn")
    assert [answer.id for answer in answers] == [answer.id for answer in exact]
    assert [a.score for a in answers] == pytest.approx([a.score for a in exact], rel=1e-5)
    assert [a.known for a in answers] == [a.known for a in exact]
    assert "the index finds" in notes


def test_only_candidates_of_the_index_are_answers(run, monkeypatch):
    few = np.array([3, 30, 300])
    monkeypatch.setattr(
        *(index_module.EntityIndex, "candidates"),
        lambda _, vectors, count: [few] * len(vectors),
    )
    answers, _ = approximate(run, k=20, candidates="any")
    names = {run.vocabulary.entity_ids[row] for row in few}
    assert {answer.id for answer in answers} == names


def test_an_index_is_built_once_and_its_recall_measured_once(run):
    first, notes = approximate(run)
    assert "building an index" in notes
    assert "measuring the recall" in notes
    again, notes = approximate(run)
    assert again == first
    assert "building" not in notes
    assert "measuring" not in notes
    assert "answers are approximate: the index finds" in notes
    kept = json.loads((run.folder.path / indexed.RECALL).read_text())
    assert 0.9 < kept["recall"] <= 1


@pytest.mark.parametrize("damage", ["shorter", "changed", "forged"])
def test_a_damaged_index_is_never_loaded_but_built_again(run, damage, monkeypatch):
    expected, _ = approximate(run)
    (folder,) = indexed.cache_folder().iterdir()
    content = bytearray((folder / indexed.INDEX).read_bytes())
    if damage == "shorter":
        del content[-100:]
    elif damage == "changed":
        content[len(content) // 2] ^= 255
    else:
        content = bytearray(b"usearch" + bytes(1000))
    (folder / indexed.INDEX).write_bytes(content)
    monkeypatch.setattr(indexed, "load_index", None)
    answers, notes = approximate(run)
    assert "building an index" in notes
    assert answers == expected


def test_an_index_of_another_table_is_not_used(run, monkeypatch):
    approximate(run)
    unit = type(run.method).unit
    monkeypatch.setattr(type(run.method), "unit", lambda self, ids: -unit(self, ids))
    assert "building an index" in approximate(run)[1]


def test_an_index_in_a_run_is_not_looked_at(run):
    (run.folder.path / indexed.INDEX).write_bytes(b"of a stranger")
    try:
        assert "building an index" in approximate(run)[1]
    finally:
        (run.folder.path / indexed.INDEX).unlink()


def test_entities_that_fit_come_first_even_if_they_are_far(run, monkeypatch):
    monkeypatch.setattr(best, "CANDIDATES", 4)
    index = index_module.build_index(run.method, Notes())
    vectors = Vectors.of([torch.nn.functional.normalize(torch.randn(2, 1, DIM), dim=-1)])
    nothing = torch.zeros(1, ENTITIES, dtype=torch.bool)
    few = nothing.clone()
    few[0, ::100] = True
    asked = vectors, nothing, few, 5
    expected = best_in_blocks(run.method, *asked)
    found = best_by_index(run.method, index, *asked)
    assert found.rows[0].tolist() == expected.rows[0].tolist()
    omitted = torch.ones_like(few)
    omitted[0, ::50] = False  # so that most candidates are omitted
    found = best_by_index(run.method, index, vectors, omitted, None, 5)
    expected = best_in_blocks(run.method, vectors, omitted, None, 5)
    assert found.rows[0].tolist() == expected.rows[0].tolist()


def test_other_methods_and_small_tables(run):
    with pytest.raises(ConfigError, match="ask with lmpnn, not search"):
        run.ask(FORMULA, approximate=True, method="search")
    listener = Notes()
    whole = Run.open(run.folder.path)
    whole.ask(FORMULA, approximate=True, listener=listener)
    assert "answers are exact: the entity table is small" in listener.notes[-1]


def test_without_the_extra_the_command_that_installs_it_is_named(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "usearch", None)
    with pytest.raises(LmpnnError, match=r"pip install 'lmpnn-kge\[index\]'"):
        run.ask(FORMULA, approximate=True)


def test_the_command_prints_the_recall(run):
    said = cli("ask", run.folder.path, FORMULA, "--approximate", "--table-memory", LIMIT).stderr
    assert "of the 10 nearest entities of" in said


def test_without_a_home_the_cache_needs_a_place(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(indexed.Path, "home", nowhere)
    with pytest.raises(FileError, match="set XDG_CACHE_HOME to a folder"):
        indexed.cache_folder()
