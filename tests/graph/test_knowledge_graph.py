"""Graphs from folders of every layout; names, labels, and what is wrong with a folder."""

import json

import pytest
from click.testing import CliRunner

from lmpnn_kge import DatasetError, KnowledgeGraph, QueryError
from lmpnn_kge.cli import main
from lmpnn_kge.graph.knowledge_graph import fingerprint, open_graph

from ..libkge_files import dataset_folder


@pytest.fixture
def named(tmp_path):
    """A folder of named triples, as most graphs are published."""
    folder = tmp_path / "countries"
    folder.mkdir()
    (folder / "train.txt").write_text(
        "France\tborders\tGermany\nGermany\tborders\tPoland\nFrance\tcurrency\tEuro\n"
    )
    (folder / "valid.txt").write_text("Germany\tcurrency\tEuro\n")
    (folder / "test.txt").write_text("Poland\tborders\tCôte d'Ivoire\n")
    return folder


def test_named_triples_are_numbered_by_first_occurrence(named):
    graph = KnowledgeGraph.open(named)
    assert graph.name == "countries"
    assert graph.entity_ids == ["France", "Germany", "Poland", "Euro", "Côte d'Ivoire"]
    assert graph.relation_ids == ["borders", "currency"]
    assert graph.splits["valid"].tolist() == [[1, 1, 3]]


def test_questions_in_words(named):
    graph = KnowledgeGraph.open(named)
    assert graph.answer("borders(?x, ?) & currency(?x, Euro)") == ["Germany", "Poland"]
    assert graph.answer("borders(?x, ?) & currency(?x, Euro)", split="train") == ["Germany"]
    assert graph.answer("""borders(?, "Côte d'Ivoire")""") == ["Poland"]
    assert graph.answer("borders(France, ?) & !currency(?, Euro)") == []


@pytest.mark.parametrize(
    ("formula", "refuted"),
    [
        ("borders(?, ?x)", []),
        ("borders(?, ?x) & !currency(?, Euro)", ["France"]),
        ("borders(?, ?x) & !currency(?x, Euro)", []),  # some other ?x may do
        ("borders(?, ?x) & !borders(France, ?) & ? != Poland", ["Germany", "Poland"]),
        ("borders(?, ?x) & !(borders(?y, ?) & borders(France, ?y))", ["Poland"]),
        ("borders(?, ?x) & !(borders(?x, ?y) & borders(?y, ?))", []),
        ("borders(?, ?x) & !(borders(?y, ?) & ?y != France)", ["Poland"]),
        ("borders(?, ?x) & !(borders(?y, ?) & !currency(?y, Euro))", []),  # ?y may get one
        ("!borders(France, ?) | borders(?, Poland)", []),
        ("!borders(France, ?) & currency(?, Euro) | !borders(?, Poland)", ["Germany"]),
        ("!(currency(?, Euro) & borders(?, ?x)) & borders(?y, ?)", ["France"]),
    ],
)
def test_what_edges_refute_no_edge_can_restore(named, formula, refuted):
    graph = KnowledgeGraph.open(named)
    found = graph.refuted(formula)
    assert [graph.entity_ids[row] for row in found] == refuted
    for split in ("train", "valid", "test"):
        assert not set(refuted) & set(graph.answer(formula, split))


def test_a_graph_of_libkge_has_labels(toy_dataset):
    graph = KnowledgeGraph.open(toy_dataset)
    row = graph.vocabulary.entity("person/ada_voss")
    assert graph.vocabulary.entity(graph.vocabulary.label(row)) == row


def test_an_ambiguous_label_lists_the_candidates(tmp_path):
    folder = dataset_folder(tmp_path / "g", ["m1", "m2", "m3"], ["r"])
    yaml = "dataset:\n  files.entity_strings: {filename: s.del, type: idmap}\n"
    (folder / "dataset.yaml").write_text(yaml)
    (folder / "s.del").write_text("m1\tParis\nm2\tParis\nm3\tRome\n")
    graph = KnowledgeGraph.open(folder)
    assert graph.answer("r(?, m2)") == graph.answer("r(m1, ?x) & r(?, ?x)")
    assert graph.vocabulary.entity("Rome") == 2
    with pytest.raises(QueryError, match="'Paris' is the label of 2 entity ids: m1, m2"):
        graph.answer("r(Paris, ?)")


def test_an_edge_of_two_splits_is_known_from_the_first(tmp_path):
    folder = dataset_folder(
        tmp_path / "g", ["a", "b"], ["r"], train="0\t0\t1\n0\t0\t1\n", test="0\t0\t1\n1\t0\t1\n"
    )
    triples, level = KnowledgeGraph.open(folder).edges
    assert triples.tolist() == [[0, 0, 1], [1, 0, 1]]
    assert level.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("train.txt", b"a\tr\tb\nFrance\tborders\n", "train.txt line 2 must be a head, a relation"),
        ("train.txt", b"France\tborders\tItaly\t1861\n", "['France', 'borders', 'Italy', '1861']"),
        ("train.txt", b"France\t\tItaly\n", "line 1 must be a head, a relation and a tail"),
        ("test.txt", b"a\tb\t\xff\n", "test.txt is not UTF-8"),
        ("valid.txt", None, "it has neither dataset.yaml nor valid.txt"),
    ],
)
def test_a_broken_folder_of_names(named, file, content, words):
    if content is None:
        (named / file).unlink()
    else:
        (named / file).write_bytes(content)
    with pytest.raises(DatasetError) as refused:
        KnowledgeGraph.open(named)
    assert words in str(refused.value)


def test_the_mark_at_the_beginning_of_a_file_is_no_part_of_a_name(named):
    before = KnowledgeGraph.open(named)
    for file in named.glob("*.txt"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert KnowledgeGraph.open(named).entity_ids == before.entity_ids


def test_a_fingerprint_is_that_of_names_and_triples(named):
    before = fingerprint(KnowledgeGraph.open(named))
    assert fingerprint(open_graph(named)) == before
    train, test = named / "train.txt", named / "test.txt"
    lines = train.read_text()
    for changed in (lines + "France\tborders\tFrance\n", lines.replace("France", "Gaul")):
        train.write_text(changed)
        assert fingerprint(KnowledgeGraph.open(named)) != before
    train.write_text(lines + test.read_text())  # the same triples, but known
    test.write_text("")
    assert fingerprint(KnowledgeGraph.open(named)) != before


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def test_answer_prints_names(named):
    result = run("answer", "--dataset", named, "borders(?x, ?)")
    assert result.stdout.splitlines() == ["Germany", "Poland", "Côte d'Ivoire"]
    assert result.stderr == "3 answers\n"
    facts = json.loads(run("answer", "--dataset", named, "--json", "borders(?x, ?)").stdout)
    assert facts["answers"][0] == {"id": "Germany", "label": "Germany"}
    assert "FROM queries" in run("answer", "--dataset", named, "--sql", "borders(?x, ?)").stdout


def test_answer_points_at_a_mistake(named):
    lines = run("answer", "--dataset", named, "borders(Frnce, ?)", code=2).stderr.splitlines()
    assert lines == [
        "Error: there is no entity 'Frnce'; did you mean 'France'? (column 9)",
        "borders(Frnce, ?)",
        "        ^",
    ]


def test_draw_writes_a_picture(tmp_path):
    run("draw", "borders(Germany, ?) & !currency(?, Euro)", "-o", tmp_path / "g.svg")
    assert (tmp_path / "g.svg").read_text().startswith("<svg ")
    run("draw", "3cm", "-o", tmp_path / "g.svg")
    assert "cannot be written" in run("draw", "2p", "-o", tmp_path / "no" / "g.svg", code=2).stderr
