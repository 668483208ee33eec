"""The binary copy of a large graph: quick if it is right, and never used if it is not."""

import json
import os
import shutil

import pytest
from safetensors.numpy import load, save

from lmpnn_kge import FileError, KnowledgeGraph, split_file
from lmpnn_kge.graph import folders
from lmpnn_kge.graph.formats import cache

from ...conftest import ROOT
from ...edited import signed

TRIPLES = ROOT / "tests" / "data" / "toy.tsv"


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch):
    """Small graphs get a cache, too, and files that are older than a moment count as old."""
    monkeypatch.setattr(cache, "WORTH", 1)
    monkeypatch.setattr(cache, "RECENT", -(10**18))


@pytest.fixture
def folder(tmp_path):
    split_file(TRIPLES, tmp_path / "toy")
    return tmp_path / "toy"


@pytest.fixture
def reads(monkeypatch):
    """The folders whose texts were read."""
    read, seen = folders.read_texts, []
    monkeypatch.setattr(folders, "read_texts", lambda folder: seen.append(folder) or read(folder))
    return seen


def same(one, other):
    assert one.fingerprint == other.fingerprint
    assert one.name == other.name
    for field in cache.LISTS:
        assert getattr(one.vocabulary, field) == getattr(other.vocabulary, field)
    assert {s: t.tolist() for s, t in one.splits.items()} == {
        s: t.tolist() for s, t in other.splits.items()
    }


def opened(folder):
    return KnowledgeGraph.open(folder)


def test_split_leaves_a_cache_and_opening_uses_it(folder, reads):
    assert (folder / cache.NAME).is_file()
    from_cache = opened(folder)
    assert reads == []
    (folder / cache.NAME).unlink()
    from_text = opened(folder)
    assert reads == [folder]
    same(from_cache, from_text)
    same(opened(folder), from_text)
    assert reads == [folder]


def test_every_layout_is_opened_from_its_cache_as_from_its_texts(toy_dataset, tmp_path, reads):
    shutil.copytree(toy_dataset, tmp_path / "libkge")
    (tmp_path / "named").mkdir()
    for split in ("train", "valid", "test"):
        (tmp_path / "named" / f"{split}.tsv").write_bytes(TRIPLES.read_bytes())
    for folder in (tmp_path / "libkge", tmp_path / "named"):
        first, second = opened(folder), opened(folder)
        assert reads == [folder]
        same(first, second)
        reads.clear()


#: What to change in a file, so that it is as long as before.
OLD = {
    "train.del": (b"\t0\t", b"\t1\t"),
    "entity_strings.del": (b"\tperson", b"\tParson"),
    "relation_ids.del": (b"friend", b"friemd"),
}


@pytest.mark.parametrize("keep_times", [False, True])
@pytest.mark.parametrize("name", OLD)
def test_a_change_of_a_text_is_seen_even_if_size_and_time_stay(folder, reads, name, keep_times):
    file, before = folder / name, opened(folder)
    stat = file.stat()
    file.write_bytes(file.read_bytes().replace(OLD[name][0], OLD[name][1], 1))
    assert file.stat().st_size == stat.st_size
    if keep_times:
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "RECENT", 10**18)  # so short a time ago may hide a change
        after = opened(folder)
    assert reads == [folder]
    assert (after.fingerprint, after.vocabulary.entity_labels) != (
        before.fingerprint,
        before.vocabulary.entity_labels,
    )


def test_a_file_that_comes_or_goes_is_seen(folder, reads):
    (folder / "labels.tsv").write_text("person/ada_voss\tAda\n")
    graph = opened(folder)
    assert reads == [folder]
    assert graph.vocabulary.label(graph.vocabulary.entity("person/ada_voss")) == "Ada"
    (folder / "labels.tsv").unlink()
    graph = opened(folder)
    assert reads == [folder] * 2
    assert graph.vocabulary.label(graph.vocabulary.entity("person/ada_voss")) != "Ada"


def test_contents_are_compared_once_and_times_do_afterwards(folder, tmp_path, monkeypatch):
    digest, seen = cache._digest, []
    monkeypatch.setattr(cache, "_digest", lambda *given: seen.append(1) or digest(*given))
    shutil.copytree(folder, tmp_path / "copy")
    opened(tmp_path / "copy")
    assert seen == [1, 1]  # to compare, and to write it down
    opened(tmp_path / "copy")
    assert seen == [1, 1]


def test_a_copy_of_a_folder_keeps_its_cache(folder, tmp_path, reads):
    shutil.copytree(folder, tmp_path / "copy")
    same(opened(tmp_path / "copy"), opened(folder))
    assert reads == []


def test_a_huge_file_beside_the_texts_is_not_read(folder, reads):
    (folder / "other.bin").touch()
    os.truncate(folder / "other.bin", 1 << 40)  # a hole, which takes no room on the disk
    graph = opened(folder)
    same(opened(folder), graph)
    assert len(reads) == 1


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 100, 500, -1, -100])
def test_a_damaged_cache_is_not_used_and_replaced(folder, reads, cut):
    file = folder / cache.NAME
    content = file.read_bytes()
    file.write_bytes(content[:cut])
    same(opened(folder), opened(folder))
    assert reads == [folder]
    assert len(file.read_bytes()) == len(content)


def test_a_cache_with_other_bytes_is_not_used(folder):
    file = folder / cache.NAME
    before, content = opened(folder), file.read_bytes()
    for place in [*range(0, 16), *range(16, len(content), 41)]:
        changed = bytearray(content)
        changed[place] ^= 1
        file.write_bytes(changed)
        same(opened(folder), before)


def test_a_cache_that_claims_impossible_triples_is_not_used(folder, reads):
    file = folder / cache.NAME
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["lmpnn_kge"])
    columns = load(content)
    columns["split.train"] = columns["split.train"] + 1000
    about["columns"]["split.train"] = cache._hash(columns["split.train"])
    file.write_bytes(save(columns, {"lmpnn_kge": json.dumps(signed(about))}))
    assert opened(folder).triples("train").max() < 40
    assert reads == [folder]


def test_a_folder_that_cannot_be_written_is_opened_all_the_same(folder, reads, monkeypatch):
    (folder / cache.NAME).unlink()

    def refuse(*_):
        raise FileError("read-only")

    monkeypatch.setattr(cache, "replace_file", refuse)
    opened(folder)
    opened(folder)
    assert reads == [folder, folder]
    assert not (folder / cache.NAME).exists()


def test_a_cache_that_is_a_link_is_not_used(folder, tmp_path, reads):
    (folder / cache.NAME).rename(tmp_path / "elsewhere")
    (folder / cache.NAME).symlink_to(tmp_path / "elsewhere")
    opened(folder)
    assert reads == [folder]


def test_a_second_split_leaves_a_folder_with_a_cache_as_it_is(folder):
    before = {file.name: file.stat().st_ino for file in folder.iterdir()}
    split_file(TRIPLES, folder)
    after = {file.name: file.stat().st_ino for file in folder.iterdir()}
    assert {k: v for k, v in before.items() if k != cache.NAME} == {
        k: v for k, v in after.items() if k != cache.NAME
    }


def test_a_small_graph_gets_no_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "WORTH", 8 << 20)
    split_file(TRIPLES, tmp_path / "toy")
    opened(tmp_path / "toy")
    assert not (tmp_path / "toy" / cache.NAME).exists()
