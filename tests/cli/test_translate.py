"""`lmpnn-kge translate`, and SPARQL wherever a formula is taken."""

import pytest

from ..toy_runs import cli

FORMULA = 'friend_of("Øyvind Brekke", ?) & !mentor_of(?, ?x)'
IDS = "friend_of(person/øyvind_brekke, ?) & !mentor_of(?, ?x)"


def test_a_formula_becomes_sparql():
    assert cli("translate", "borders(Germany, ?)").stdout == (
        "PREFIX : <kge:>\n\nSELECT DISTINCT ?answer WHERE {\n  :Germany :borders ?answer .\n}\n"
    )


def test_with_the_graph_labels_become_ids(toy_dataset):
    assert "<kge:Øyvind%20Brekke>" in cli("translate", FORMULA).stdout
    text = cli("translate", FORMULA, "--dataset", toy_dataset).stdout
    assert "<kge:person/øyvind_brekke> :friend_of ?answer ." in text


def test_sparql_is_printed_as_a_formula_answered_and_drawn(toy_dataset, tmp_path):
    pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    text = cli("translate", FORMULA, "--dataset", toy_dataset).stdout
    assert cli("translate", text).stdout == f"{IDS}\n"
    by_formula = cli("answer", "--dataset", toy_dataset, FORMULA).stdout
    assert cli("answer", "--dataset", toy_dataset, text).stdout == by_formula != ""
    cli("draw", text, "-o", tmp_path / "sparql.svg")
    cli("draw", IDS, "-o", tmp_path / "formula.svg")
    assert (tmp_path / "sparql.svg").read_bytes() == (tmp_path / "formula.svg").read_bytes()


def test_exact_answers_stop_at_limit(toy_dataset):
    pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    query = "SELECT ?a { <person/sven_ekdal> <friend_of> ?a }"
    every = cli("answer", "--dataset", toy_dataset, query).stdout.splitlines()
    few = cli("answer", "--dataset", toy_dataset, f"{query} LIMIT 2").stdout.splitlines()
    assert few == every[:2]
    assert len(every) > 2


def test_a_part_that_is_not_connected_is_refused():
    assert "not connected to ?" in cli("translate", "r(a, ?) & s(b, c)", code=2).stderr
