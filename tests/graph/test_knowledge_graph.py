"""Graphs: exact answers, refuted entities, edges, fingerprints, and the commands that ask."""

import json

import pytest
from click.testing import CliRunner

from lmpnn_kge import KnowledgeGraph, QueryError
from lmpnn_kge.cli import main

from ..libkge_files import dataset_folder


def test_questions_are_asked_and_answered_in_names(countries):
    graph = KnowledgeGraph.open(countries)
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
def test_an_entity_that_training_edges_refute_is_never_an_answer(countries, formula, refuted):
    graph = KnowledgeGraph.open(countries)
    assert [graph.entity_ids[row] for row in graph.refuted_rows(formula)] == refuted
    for split in ("train", "valid", "test"):
        assert not set(refuted) & set(graph.answer(formula, split))


def test_a_graph_of_libkge_has_labels(toy_dataset):
    graph = KnowledgeGraph.open(toy_dataset)
    row = graph.vocabulary.entity("person/ada_voss")
    assert graph.vocabulary.entity(graph.vocabulary.label(row)) == row


def test_an_edge_of_two_splits_is_known_from_the_first(tmp_path):
    folder = dataset_folder(
        tmp_path / "g", ["a", "b"], ["r"], train="0\t0\t1\n0\t0\t1\n", test="0\t0\t1\n1\t0\t1\n"
    )
    triples, level = KnowledgeGraph.open(folder).edges
    assert triples.tolist() == [[0, 0, 1], [1, 0, 1]]
    assert level.tolist() == [0, 2]


def test_a_fingerprint_changes_with_names_triples_and_splits(countries):
    before = KnowledgeGraph.open(countries).fingerprint
    assert KnowledgeGraph.open(countries).fingerprint == before
    train, test = countries / "train.txt", countries / "test.txt"
    lines = train.read_text()
    for changed in (lines + "France\tborders\tFrance\n", lines.replace("France", "Gaul")):
        train.write_text(changed)
        assert KnowledgeGraph.open(countries).fingerprint != before
    train.write_text(lines + test.read_text())  # the same triples, but known
    test.write_text("")
    assert KnowledgeGraph.open(countries).fingerprint != before


def test_a_repr_is_one_line_with_the_sizes(countries):
    assert repr(KnowledgeGraph.open(countries)) == (
        f"KnowledgeGraph(countries: 5 entities, 2 relations, {countries})"
    )


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def test_answer_prints_names(countries):
    result = run("answer", "--dataset", countries, "borders(?x, ?)")
    assert result.stdout.splitlines() == ["Germany", "Poland", "Côte d'Ivoire"]
    assert result.stderr == "3 answers\n"
    facts = json.loads(run("answer", "--dataset", countries, "--json", "borders(?x, ?)").stdout)
    assert facts["answers"][0] == {"id": "Germany", "label": "Germany"}
    assert "FROM queries" in run("answer", "--dataset", countries, "--sql", "borders(?x, ?)").stdout


def test_answer_points_at_a_mistake(countries):
    lines = run("answer", "--dataset", countries, "borders(Frnce, ?)", code=2).stderr.splitlines()
    assert lines == [
        "Error: there is no entity 'Frnce'; did you mean 'France'? (column 9)",
        "borders(Frnce, ?)",
        "        ^",
    ]


def test_draw_writes_a_picture(tmp_path):
    run("draw", "borders(Germany, ?) & !currency(?, Euro)", "-o", tmp_path / "g.svg")
    assert (tmp_path / "g.svg").read_text().startswith("<svg ")
    run("draw", "3cm", "-o", tmp_path / "g.svg")
    run("draw", "2p", "-o", tmp_path / "new" / "g.svg")
    below = tmp_path / "g.svg" / "g.svg"
    assert "cannot be written" in run("draw", "2p", "-o", below, code=2).stderr


def test_a_formula_is_written_with_ids(toy_dataset):
    graph = KnowledgeGraph.open(toy_dataset)
    assert str(graph.with_ids('friend_of("Ada Voss", ?)')) == "friend_of(person/ada_voss, ?)"
    with pytest.raises(QueryError, match="there is no entity 'Nobody'"):
        graph.with_ids("friend_of(Nobody, ?)")
