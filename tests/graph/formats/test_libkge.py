"""LibKGE's dataset folders, sound and broken."""

import shutil

import pytest

from lmpnn_kge import DatasetError, KnowledgeGraph
from lmpnn_kge.graph.formats import libkge
from lmpnn_kge.graph.formats.libkge import LibkgeFolder
from lmpnn_kge.graph.triples import SPLITS

from ...libkge_files import dataset_folder

E3, R2 = ["a", "b", "c"], ["r", "s"]


def test_the_toy_graph_is_read_completely(toy_dataset):
    graph = KnowledgeGraph.open(toy_dataset)
    assert graph.name == "toykg"
    assert (len(graph.entity_ids), len(graph.relation_ids)) == (40, 6)
    assert [len(graph.triples(split)) for split in ("train", "valid", "test")] == [332, 24, 25]
    assert list(graph.splits) == [
        "train", "valid", "test", "test_without_unseen", "train_sample", "valid_without_unseen",
    ]  # fmt: skip
    assert "person/øyvind_brekke" in graph.entity_ids
    labels = graph.vocabulary.entity_labels
    assert labels.count(None) == 1
    assert len(labels) == 40


@pytest.mark.parametrize(
    "yaml",
    [
        "dataset:\n  files.train.filename: other.del\n  name: tiny\n",
        "dataset:\n  files:\n    train:\n      filename: other.del\n",
        "dataset:\n  train: other.del\n",
    ],
    ids=["dotted", "nested", "2019"],
)
def test_file_names_are_read_in_every_style(tmp_path, yaml):
    folder = dataset_folder(tmp_path / "g", E3, R2)
    (folder / "dataset.yaml").write_text(yaml)
    (folder / "other.del").write_text("2\t1\t0\tan extra column\n")
    assert KnowledgeGraph.open(folder).triples("train").tolist() == [[2, 1, 0]]


def test_id_files_of_2019_have_other_names(tmp_path):
    folder = dataset_folder(tmp_path / "g", E3, R2)
    (folder / "dataset.yaml").write_text("dataset:\n  entity_map: entity_map.del\n")
    (folder / "entity_ids.del").rename(folder / "entity_map.del")
    assert KnowledgeGraph.open(folder).entity_ids == E3


def test_rows_follow_the_index_not_the_line_and_gaps_become_blank_nodes(tmp_path):
    folder = dataset_folder(tmp_path / "g", E3, R2)
    (folder / "entity_ids.del").write_text("3\td with\ttab\n0\ta\n1\tb\n")
    assert KnowledgeGraph.open(folder).entity_ids == ["a", "b", "_:2", "d with\ttab"]


def test_a_label_is_the_id_if_there_are_no_labels(tmp_path):
    names = KnowledgeGraph.open(dataset_folder(tmp_path / "g", E3, R2)).vocabulary
    assert (names.entity_labels, names.relation_labels) == (None, None)
    assert [names.label(row) for row in range(3)] == E3


def test_strings_by_index_and_the_first_line_of_an_id_wins(tmp_path):
    folder = dataset_folder(tmp_path / "g", E3, R2)
    (folder / "dataset.yaml").write_text(
        "dataset:\n"
        "  files.entity_strings: {filename: names.del, type: idmap}\n"
        "  files.relation_strings: {filename: relations.del, type: map}\n"
    )
    (folder / "names.del").write_text("b\tBee\nb\tBumblebee\nx\tnobody\n")
    (folder / "relations.del").write_text("1\tsings\n")
    names = KnowledgeGraph.open(folder).vocabulary
    assert names.entity_labels == [None, "Bee", None]
    assert names.relation_labels == [None, "sings"]


def test_an_empty_split_has_no_triples(tmp_path):
    folder = dataset_folder(tmp_path / "g", E3, R2, valid="\n")
    assert KnowledgeGraph.open(folder).triples("valid").shape == (0, 3)


BROKEN = {
    "yaml that cannot be parsed": ("dataset.yaml", b"dataset: [", "not a readable YAML"),
    "yaml that makes objects": (
        "dataset.yaml",
        b"!!python/object/apply:os.getcwd []",
        "not a readable YAML",
    ),
    "yaml without the section": ("dataset.yaml", b"name: x", "no section 'dataset'"),
    "yaml in another encoding": ("dataset.yaml", b"dataset: {name: \xff}", "not UTF-8"),
    "yaml that multiplies": ("dataset.yaml", b"a: &a {x: 1}\ndataset: {b: *a}", "has aliases"),
    "yaml of a wrong type": ("dataset.yaml", b"dataset: {d: !!timestamp x}", "not a readable YAML"),
    "yaml of a bad date": ("dataset.yaml", b"dataset: {d: 2001-13-45}", "not a readable YAML"),
    "yaml of many brackets": ("dataset.yaml", b"[" * 20000, "not a readable YAML"),
    "a file elsewhere": (
        "dataset.yaml",
        b"dataset: {files.test.filename: /etc/hostname}",
        "names '/etc/hostname' for test, which is not in its folder",
    ),
    "a file in a parent folder": (
        "dataset.yaml",
        b"dataset: {files.entity_ids.filename: x/../../y}",
        "for entity_ids, which is not in its folder",
    ),
    "no entity ids": ("entity_ids.del", None, "entity_ids.del is missing"),
    "an empty id file": ("entity_ids.del", b"", "is empty"),
    "an id without a tab": ("entity_ids.del", b"0 a\n", "line 1 has no tab"),
    "an id without an index": ("entity_ids.del", b"0\ta\nx\tb\n", "line 2 starts with 'x'"),
    "an endless index": ("entity_ids.del", b"9" * 5000 + b"\ta\n", "not an index"),
    "an index twice": ("entity_ids.del", b"0\ta\n0\tb\n", "line 2 gives index 0 a second time"),
    "an id twice": ("entity_ids.del", b"0\ta\n1\ta\n2\tc\n", "these repeat: 1 ('a')"),
    "an absurd index": ("entity_ids.del", b"99999999999\ta\n", "indexes up to 99999999999"),
    "ids in another encoding": ("entity_ids.del", b"0\t\xff\n", "not UTF-8"),
    "no test file": ("test.del", None, "test.del is missing"),
    "a short line": ("test.del", b"0\t0\t1\n0\t0\n", "test.del is not a file of index triples"),
    "names for indexes": ("test.del", b"a\tr\tb\n", "not a file of index triples"),
    "an index too large": ("test.del", b"0\t0\t1\n0\t0\t3\n", "line 2 has [0, 0, 3]"),
    "a relation too large": ("test.del", b"0\t2\t1\n", "line 1 has [0, 2, 1]"),
    "a negative index": ("test.del", b"-1\t0\t1\n", "line 1 has [-1, 0, 1]"),
    "bytes in another encoding": ("test.del", b"0\t0\t1\xff\n", "not UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_is_refused_with_the_file_and_the_reason(tmp_path, name):
    folder = dataset_folder(tmp_path / "g", E3, R2)
    file, content, words = BROKEN[name]
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    with pytest.raises(DatasetError) as refused:
        KnowledgeGraph.open(folder).triples("test")
    assert str(folder) in str(refused.value)
    assert words in str(refused.value)


def test_a_folder_that_lost_its_dataset_yaml_is_refused_and_not_read_as_named_triples(tmp_path):
    folder = dataset_folder(tmp_path / "g", E3, R2)
    assert libkge.recognises(folder)
    (folder / "dataset.yaml").unlink()
    for read in (libkge.read, LibkgeFolder.open, KnowledgeGraph.open):
        with pytest.raises(DatasetError, match=r"g/dataset.yaml is missing"):
            read(folder)


def test_opening_a_folder_reads_no_triples(tmp_path):
    folder = dataset_folder(tmp_path / "g", E3, R2, valid="2\t1\t0\n")
    (folder / "train.del").unlink()
    (folder / "test.del").write_text("not triples")
    graph = KnowledgeGraph.open(folder)
    assert list(graph.splits) == list(SPLITS)
    assert graph.triples("valid").tolist() == [[2, 1, 0]]
    with pytest.raises(DatasetError, match=r"train.del is missing"):
        graph.triples("train")
    with pytest.raises(DatasetError, match=r"test.del is not a file of index triples"):
        graph.triples("test")


def test_a_split_is_read_once_and_only_when_it_is_needed(toy_dataset, monkeypatch):
    files = []
    read_triples = libkge._read_triples

    def counted(file):
        files.append(file.name)
        return read_triples(file)

    monkeypatch.setattr(libkge, "_read_triples", counted)
    graph = KnowledgeGraph.open(toy_dataset)
    assert files == []
    assert graph.triples("valid") is graph.triples("valid")
    assert files == ["valid.del"]
    assert graph.answer("lives_in(?, ?x)", "train")
    assert len(graph.fingerprint) == 64
    assert [len(graph.triples(split)) for split in SPLITS] == [332, 24, 25]
    assert sorted(files) == ["test.del", "train.del", "valid.del"]  # and no train_sample.del


def test_a_split_stays_after_its_file_is_deleted(tmp_path):
    folder = dataset_folder(tmp_path / "g", E3, R2, train="2\t1\t0\n")
    graph = KnowledgeGraph.open(folder)
    assert graph.triples("train").tolist() == [[2, 1, 0]]
    (folder / "train.del").unlink()
    assert graph.triples("train").tolist() == [[2, 1, 0]]


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(
        DatasetError, match="nowhere is neither a folder nor a file of triples; `lmpnn-kge"
    ):
        KnowledgeGraph.open(tmp_path / "nowhere")


def test_a_name_too_long_for_a_folder_is_refused():
    with pytest.raises(DatasetError, match="cannot be read"):
        KnowledgeGraph.open("a" * 300)


def test_an_unknown_split_names_the_known_ones(toy_dataset):
    with pytest.raises(DatasetError, match="did you mean 'test'"):
        KnowledgeGraph.open(toy_dataset).triples("tset")


def test_a_map_with_far_too_few_ids_for_its_indexes_is_refused_before_memory_is_taken(
    tmp_path, toy_dataset
):
    shutil.copytree(toy_dataset, tmp_path / "toy")
    file = tmp_path / "toy" / "entity_ids.del"
    with file.open("a") as stream:
        stream.write("999999999\tfar away\n")
    with pytest.raises(
        DatasetError, match=r"entity_ids\.del has 41 ids but indexes up to 999999999"
    ):
        KnowledgeGraph.open(tmp_path / "toy")
