"""The same graph from every format is the same folder, byte for byte."""

import gzip
import io
import json
import sys
from types import SimpleNamespace

import pytest

from lmpnn_kge import DatasetError, KnowledgeGraph, split_file
from lmpnn_kge.graph.formats.ntriples import ntriples
from lmpnn_kge.graph.numbered import Numbered
from lmpnn_kge.graph.vocabulary import Vocabulary

from ..conftest import ROOT
from ..toy_runs import cli

ROWS = [tuple(line.split("\t")) for line in (ROOT / "tests/data/toy.tsv").read_text().splitlines()]
HEAD = ("head", "relation", "tail")


def text(sign="\t", quote="", end="\n", header=False, rows=ROWS):
    rows = [HEAD, *rows] if header else rows
    return end.join(sign.join(f"{quote}{cell}{quote}" for cell in row) for row in rows) + end


def n_triples():
    numbered = Numbered.of(ROWS)
    names = Vocabulary(numbered.entities, numbered.relations)
    return "".join(ntriples(names, numbered.triples))


FILES = {
    "a.tsv": lambda: text(),
    "b.csv": lambda: text(","),
    "c.csv": lambda: text(";", '"', "\r\n", header=True, rows=ROWS[::-1]),
    "d.csv.gz": lambda: gzip.compress(text(",", header=True).encode()),
    "e.tsv": lambda: "\ufeff" + text(rows=[*ROWS, *ROWS]),
    "f.jsonl": lambda: "".join(
        json.dumps(dict(zip(HEAD, row, strict=True))) + "\n" for row in ROWS
    ),
    "g.nt": n_triples,
    "h.nt.gz": lambda: gzip.compress(n_triples().encode()),
    "i.ttl": lambda: "@base <kge:> .\n" + n_triples().replace("<kge:", "<"),
    "j.nq": n_triples,
}  # fmt: skip


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return contents(split_file(ROOT / "tests/data/toy.tsv", tmp_path_factory.mktemp("a") / "toy"))


def contents(graph):
    return {file.name: file.read_bytes() for file in graph.folder.iterdir()}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_folder(tmp_path, name, expected):
    if ".n" in name or ".ttl" in name:
        pytest.importorskip("pyoxigraph")
    content = FILES[name]()
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert contents(split_file(tmp_path / name, tmp_path / "toy")) == expected


def test_parts_of_a_graph_give_the_same_folder(tmp_path, expected):
    (tmp_path / "1.tsv").write_text(text(rows=ROWS[200:]))
    (tmp_path / "2.csv").write_text(text(",", rows=ROWS[:250]))
    graph = split_file([tmp_path / "2.csv", tmp_path / "1.tsv"], tmp_path / "toy")
    assert contents(graph) == expected


def test_frames_and_parquet_give_the_same_folder(tmp_path, expected):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(ROWS, columns=HEAD)
    graph = KnowledgeGraph.from_triples(frame, name="toy")
    assert contents(graph.save(tmp_path / "toy")) == expected
    frame.to_parquet(tmp_path / "toy.parquet")
    (tmp_path / "parquet").mkdir()
    again = split_file(tmp_path / "toy.parquet", tmp_path / "parquet" / "toy")
    assert contents(again) == expected


def test_triples_in_memory_give_the_same_folder(tmp_path, expected):
    graph = KnowledgeGraph.from_triples(iter(ROWS), name="toy").save(tmp_path / "toy")
    assert contents(graph) == expected


@pytest.mark.parametrize(("format", "sign"), [("tsv", "\t"), ("csv", ",")])
def test_standard_input_gives_the_same_folder(tmp_path, monkeypatch, expected, format, sign):
    stdin = SimpleNamespace(buffer=io.BytesIO(text(sign).encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    graph = split_file("-", tmp_path / "toy", format=format)
    assert contents(graph) == expected


def test_an_error_in_standard_input_is_one_of_stdin(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a,r,b\nb,r\n")))
    with pytest.raises(DatasetError, match=r"^stdin line 2 must be a head, a relation and a tail"):
        split_file("-", tmp_path / "toy", format="csv")


def test_a_file_is_opened_as_the_graph_that_split_writes(tmp_path):
    file = ROOT / "tests/data/toy.tsv"
    assert KnowledgeGraph.open(file).fingerprint == split_file(file, tmp_path / "t").fingerprint
    found = cli("answer", "friend_of(person/ada_voss, ?)", "--dataset", file)
    assert "person/" in found.stdout
    tiny = tmp_path / "tiny.tsv"
    tiny.write_text("a\tr\tb\nb\tr\tc\n")
    assert cli("answer", "r(?x, ?)", "--dataset", tiny).stdout == "b\nc\n"


def test_options_for_files_are_refused_for_a_folder(toy_dataset):
    with pytest.raises(DatasetError, match="is a folder; header are for files of triples"):
        KnowledgeGraph.open(toy_dataset, header=True)


@pytest.mark.parametrize(("valid", "test"), [(0.6, 0.6), (0.5, 0.5), (-0.1, 0.1), (0.1, 1.0)])
def test_shares_that_leave_nothing_to_train_on_are_refused(tmp_path, valid, test):
    with pytest.raises(DatasetError, match="leave nothing to train on"):
        split_file(ROOT / "tests/data/toy.tsv", tmp_path / "toy", valid=valid, test=test)
    assert not (tmp_path / "toy").exists()


def test_the_command_refuses_such_shares_before_it_reads(tmp_path):
    message = cli("split", tmp_path / "none", "-o", tmp_path / "g", "--valid", 0.6, "--test", 0.6,
                  code=2).stderr  # fmt: skip
    assert "shares of 0.6 for valid and 0.6 for test leave nothing to train on" in message


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "\ud800"])
def test_a_graph_with_a_name_that_no_file_holds_is_not_saved(tmp_path, name):
    import numpy as np

    splits = {split: np.array([[0, 0, 0]]) for split in ("train", "valid", "test")}
    graph = KnowledgeGraph(tmp_path, "g", Vocabulary([name], ["r"]), splits)
    with pytest.raises(DatasetError, match=r"the name .* cannot be written"):
        graph.save(tmp_path / "g")
    assert list(tmp_path.iterdir()) == []
