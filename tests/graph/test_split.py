"""One file of triples in three splits, none of which gives another away."""

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge import DatasetError, KnowledgeGraph
from lmpnn_kge.errors import FileError
from lmpnn_kge.graph.formats.libkge import LibkgeFolder
from lmpnn_kge.graph.hold_out import hold_out
from lmpnn_kge.graph.numbered import Numbered
from lmpnn_kge.graph.split import split_file
from lmpnn_kge.graph.triples import SPLITS

from ..conftest import ROOT
from ..toy_runs import cli

TRIPLES = ROOT / "tests" / "data" / "toy.tsv"

names = st.sampled_from("abcdefgh")
graphs = st.sets(st.tuples(names, st.sampled_from("rs"), names), min_size=1, max_size=80)
shares = st.sampled_from([0.1, 0.3, 0.45])


def split_triples(triples, seed, valid, test):
    """Named triples by split."""
    graph = Numbered.of(triples).sorted()
    splits = hold_out(graph, seed, valid, test)
    return {
        split: [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in rows]
        for split, rows in splits.items()
    }


def entities(triples):
    return {entity for head, _, tail in triples for entity in (head, tail)}


@settings(deadline=None)
@given(graphs, shares, shares, st.randoms(use_true_random=False))
def test_a_split_keeps_every_triple_once_and_every_entity_in_train(triples, valid, test, shuffler):
    splits = split_triples(triples, "seed", valid, test)
    assert sorted(triple for split in SPLITS for triple in splits[split]) == sorted(triples)
    assert entities(splits["train"]) == entities(triples)
    where = {triple: split for split in SPLITS for triple in splits[split]}
    for head, relation, tail in triples:
        mirrored = (tail, relation, head)
        assert where.get(mirrored, where[head, relation, tail]) == where[head, relation, tail]
    shuffled = list(triples)
    shuffler.shuffle(shuffled)
    again = split_triples(shuffled, "seed", valid, test)
    assert {split: set(found) for split, found in again.items()} == {
        split: set(found) for split, found in splits.items()
    }


def test_every_relation_is_held_out_by_its_share_if_entities_allow_it():
    drawn = random.Random(0)
    sizes = {"rare": 7, "common": 100, "frequent": 1000}
    triples = {
        (f"h{drawn.randrange(50)}", relation, f"t{place}")
        for relation, size in sizes.items()
        for place in range(size)
    }
    triples |= {(f"t{place}", "kept", "t0") for place in range(1000)}
    splits = split_triples(triples, "seed", 0.2, 0.05)
    for relation, size in sizes.items():
        counts = [sum(r == relation for _, r, _ in splits[split]) for split in ("valid", "test")]
        assert counts == [int(0.2 * size), int(0.05 * size)]


def test_another_seed_holds_out_other_triples(tmp_path):
    one, other = (split_file(TRIPLES, tmp_path / f"g{seed}", seed=seed) for seed in (0, 1))
    assert one.entity_ids == other.entity_ids
    assert one.triples("test").tolist() != other.triples("test").tolist()


def test_a_file_becomes_a_dataset_folder(tmp_path):
    graph = split_file(TRIPLES, tmp_path / "toy")
    assert graph.name == "toy"
    options = LibkgeFolder.open(tmp_path / "toy").options
    assert {split: len(graph.triples(split)) for split in SPLITS} == {
        split: options[f"files.{split}.size"] for split in SPLITS
    }
    opened = KnowledgeGraph.open(tmp_path / "toy")
    found = {
        "\t".join((opened.entity_ids[s], opened.relation_ids[p], opened.entity_ids[o]))
        for split in SPLITS
        for s, p, o in opened.triples(split)
    }
    assert found == set(TRIPLES.read_text().splitlines())


def test_a_csv_file_may_have_quotes_a_header_and_repeated_triples(tmp_path):
    rows = [f'"City, {n}", in,country {n % 3}\r\n' for n in range(30)]
    file = tmp_path / "mine.csv"
    file.write_bytes(b"\xef\xbb\xbf" + "".join(["city,link,land\r\n", *rows, *rows]).encode())
    with pytest.raises(DatasetError, match="no triples are left for valid"):  # a city has one edge
        split_file(file, tmp_path / "mine", header=True)
    with pytest.raises(DatasetError, match="'city link land', shares no name with the others"):
        split_file(file, tmp_path / "mine")
    with file.open("a") as stream:
        stream.writelines(f'"City, {n}",near,"City, {(n + 1) % 30}"\n' for n in range(30))
    result = cli("split", file, "-o", tmp_path / "mine", "--header", "--valid", "0.2")
    assert "33 entities, 2 relations; 42 train, 12 valid, 6 test" in result.stdout
    graph = KnowledgeGraph.open(tmp_path / "mine")
    assert "City, 7" in graph.entity_ids
    assert graph.relation_ids == ["in", "near"]
    assert f"--dataset {tmp_path / 'mine'} -o mine.pt" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tsv", None, "a.tsv cannot be read: No such file"),
        ("a.tsv", b"", "a.tsv has no triples"),
        ("a.tsv", b"a,r,b\n", "line 1 must be a head, a relation and a tail separated by tabs"),
        ("a.csv", b"a r b\n", "line 1 must be a head, a relation and a tail separated by commas"),
        (
            "a.csv",
            b'a,r,"b\nc"\n',
            "line 1 must be a head, a relation and a tail: its tail has a tab, a line break",
        ),
        ("a.csv", b'a,r,"b"c\n', "a.csv line 1 is not readable: "),
        ("a.tsv", b"a\tr\tb\n", "no triples are left for valid: "),
        ("a.tsv", b"a\tr\t\xff\n", "is not UTF-8"),
    ],
)
def test_a_file_without_a_usable_graph_is_refused_in_one_line(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    message = cli("split", tmp_path / name, "-o", tmp_path / "graph", code=2).stderr
    assert words in message
    assert len(message.splitlines()) == 1
    assert not (tmp_path / "graph").exists()


def state(folder):
    """The files of a folder, with their contents, and whether they are the same files as before."""
    return {
        file.name: (file.read_bytes(), file.stat().st_ino, file.stat().st_mtime_ns)
        for file in folder.iterdir()
    }


def test_a_second_split_with_the_same_result_leaves_the_folder_as_it_is(tmp_path):
    first = split_file(TRIPLES, tmp_path / "toy")
    before = state(tmp_path / "toy")
    second = split_file(TRIPLES, tmp_path / "toy")
    assert second.fingerprint == first.fingerprint
    assert state(tmp_path / "toy") == before
    assert cli("split", TRIPLES, "-o", tmp_path / "toy").exit_code == 0
    assert state(tmp_path / "toy") == before
    assert os.listdir(tmp_path) == ["toy"]


@pytest.mark.parametrize("options", [{"seed": 1}, {"valid": 0.2}, {"test": 0.05}], ids=str)
def test_a_second_split_with_another_result_is_refused(tmp_path, options):
    split_file(TRIPLES, tmp_path / "toy")
    before = state(tmp_path / "toy")
    with pytest.raises(FileError, match="toy exists and holds something else; name a new folder"):
        split_file(TRIPLES, tmp_path / "toy", **options)
    assert state(tmp_path / "toy") == before
    assert os.listdir(tmp_path) == ["toy"]


def test_a_second_split_is_refused_if_somebody_added_a_file(tmp_path):
    split_file(TRIPLES, tmp_path / "toy")
    (tmp_path / "toy" / "notes.txt").write_text("mine")
    before = state(tmp_path / "toy")
    with pytest.raises(FileError, match="holds something else"):
        split_file(TRIPLES, tmp_path / "toy")
    assert state(tmp_path / "toy") == before


def test_a_folder_of_other_files_is_refused_and_kept(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("mine")
    with pytest.raises(FileError, match="holds something else"):
        split_file(TRIPLES, tmp_path / "thesis")
    assert os.listdir(tmp_path / "thesis") == ["thesis.tex"]


@pytest.mark.parametrize("name", ["loop", "loop/inside", "\udcff"])
def test_a_folder_that_cannot_be_written_is_refused_in_one_line(tmp_path, name):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(FileError, match="cannot be written"):
        split_file(TRIPLES, tmp_path / name)
