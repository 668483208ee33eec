"""Labels from files, in every layout of a folder."""

import gzip
import pickle

import pytest

from lmpnn_kge import DatasetError, KnowledgeGraph, QueryError, split_file
from lmpnn_kge.graph.formats.labels import read_labels

from ...toy_runs import cli
from .test_tables import written

LABELS = {
    "labels.csv": "id,label,type\nDB1,\"Aspirin, pure\",drug\nP1,COX 1,protein\nr,inhibits,\n",
    "labels.tsv": "DB1\tAspirin, pure\tdrug\nP1\tCOX 1\tprotein\nr\tinhibits\n",
    "names.csv": "type;name;x;id\ndrug;Aspirin, pure;1;DB1\nprotein;COX 1;2;P1\n;inhibits;3;r\n",
    "labels.jsonl": '{"id": "DB1", "label": "Aspirin, pure", "type": "drug"}\n'
    '{"id": "P1", "label": " COX\\n1", "type": "protein"}\n{"label": "inhibits", "id": "r"}\n',
}  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_a_file_of_labels_is_read_in_any_form(tmp_path, name):
    labelled = read_labels(written(tmp_path, name, LABELS[name]))
    assert labelled.labels == {"DB1": "Aspirin, pure", "P1": "COX 1", "r": "inhibits"}
    assert labelled.types == {"DB1": "drug", "P1": "protein"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a\n", "line 1 must be an id, a label and perhaps a type, or a header must name them"),
        ("a\tA\na\tB\n", "line 2 gives 'a' a second label, 'B'; it has 'A'"),
        (b"a\t\xff\n", "line 1 is not UTF-8"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_holds_no_labels_is_refused(tmp_path, content, words):
    file = tmp_path / "labels.tsv"
    if content is not None:
        written(tmp_path, file.name, content)
    with pytest.raises(DatasetError, match=words):
        read_labels(file)


def test_labels_for_other_ids_are_refused(tmp_path):
    file = written(tmp_path, "names.tsv", "x\tX\n")
    with pytest.raises(DatasetError, match=r"1 ids, and none of them is in the graph; .* 'a'"):
        KnowledgeGraph.from_triples([("a", "r", "b")], labels=file)


@pytest.fixture
def triples(tmp_path):
    rows = [f"DB{n % 7},{'rs'[n % 2]},P{n % 5}\n" for n in range(70)]
    return written(tmp_path, "drugs.csv", "head,relation,tail\n" + "".join(rows))


def test_split_keeps_labels_in_the_folder(tmp_path, triples):
    labels = written(tmp_path, "names.csv", LABELS["labels.csv"])
    cli("split", triples, "-o", tmp_path / "drugs", "--labels", labels)
    graph = KnowledgeGraph.open(tmp_path / "drugs")
    assert graph.vocabulary.label(graph.vocabulary.entity("DB1")) == "Aspirin, pure"
    assert graph.vocabulary.label(graph.vocabulary.entity("DB2")) == "DB2"
    assert graph.vocabulary.entity_types[graph.vocabulary.entity("P1")] == "protein"
    found = cli("answer", "inhibits(?, 'COX 1')".replace("'", '"'), "--dataset", tmp_path / "drugs")
    assert "Aspirin, pure  (DB1)" in found.stdout


def libkge(folder):
    graph = KnowledgeGraph.from_triples([("DB1", "r", "P1"), ("P1", "r", "DB2")], name="g")
    graph.save(folder)


def betae(folder):
    folder.mkdir()
    for name, content in {"id2ent": {0: "DB1", 1: "P1"}, "id2rel": {0: "+r", 1: "-r"}}.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(content))
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text("0\t0\t1\n1\t1\t0\n")


def named(folder):
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.csv").write_text("head,relation,tail\nDB1,r,P1\n")


@pytest.mark.parametrize("layout", [libkge, betae, named])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_folder_of_any_layout_can_have_a_file_of_labels(tmp_path, layout, ending):
    layout(tmp_path / "graph")
    content = LABELS["labels.csv"].encode()
    content = gzip.compress(content) if ending.endswith("gz") else content
    written(tmp_path / "graph", f"labels{ending}", content)
    names = KnowledgeGraph.open(tmp_path / "graph").vocabulary
    assert names.label(names.entity("DB1")) == "Aspirin, pure"
    assert names.relation_label(0) == "inhibits"
    written(tmp_path / "graph", "labels.tsv", LABELS["labels.tsv"])
    with pytest.raises(DatasetError, match="keep one of them"):
        KnowledgeGraph.open(tmp_path / "graph")


def test_types_tell_entities_of_one_label_apart(tmp_path):
    file = written(tmp_path, "names.tsv", "a\tParis\tcity\nb\tParis\tperson\n")
    graph = KnowledgeGraph.from_triples([("a", "r", "b")], labels=file)
    with pytest.raises(QueryError, match=r"label of 2 entity ids: a \(city\), b \(person\); write"):
        graph.vocabulary.entity("Paris")
    again = graph.save(tmp_path / "graph")
    assert KnowledgeGraph.open(again.folder).vocabulary.entity_types == ["city", "person"]


def test_split_file_takes_labels_from_python(tmp_path, triples):
    labels = written(tmp_path, "names.csv", LABELS["labels.csv"])
    graph = split_file(triples, tmp_path / "g", labels=labels)
    assert graph.vocabulary.relation_label(0) == "inhibits"
