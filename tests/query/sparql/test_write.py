"""Formulas as SPARQL that people read; tests/graph/test_sparql.py shows that it is right."""

from importlib.util import find_spec

import pytest
from hypothesis import assume, given, settings

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import Constant, terms
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.sparql.write import to_sparql

from ...formulas import formulas


def test_a_formula_is_written_as_people_would_write_it():
    text = to_sparql(parse("borders(Germany, ?) & !currency(?, Euro)"), limit=10)
    assert text == (
        "PREFIX : <kge:>\n"
        "\n"
        "SELECT DISTINCT ?answer WHERE {\n"
        "  :Germany :borders ?answer .\n"
        "  FILTER NOT EXISTS { ?answer :currency :Euro . }\n"
        "}\n"
        "LIMIT 10\n"
    )


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        ("http://e.org/r(http://e.org/a, ?)", "<http://e.org/a> <http://e.org/r> ?answer ."),
        ('borders("South Sudan", ?)', "<kge:South%20Sudan> :borders ?answer ."),
        ("? = Peru", "VALUES ?answer { :Peru }"),
        ("r(?, ?x) & ?x != ?", "FILTER (?x != ?answer)"),
        ("r(?, ?ª) & s(?ª, a)", "?answer :r ?x ."),
        ("r(?, ?answer)", "?answer :r ?answer2 ."),
        ("r(a, ?) | s(a, ?)", "} UNION {"),
        ("!r(a, ?)", "{ ?answer ?p ?o } UNION { ?s ?p ?answer }"),
    ],
)
def test_terms_and_conditions_have_their_forms(formula, line):
    assert line in [written.strip() for written in to_sparql(parse(formula)).splitlines()]


def test_a_query_of_iris_needs_no_prefix():
    assert to_sparql(parse("http://e.org/r(?, http://e.org/a)")).startswith("SELECT")


def test_a_blank_node_cannot_be_named():
    with pytest.raises(QueryError, match="blank node, which SPARQL cannot name; use a variable"):
        to_sparql(parse("r(?, _:b1)"))


@pytest.mark.skipif(find_spec("rdflib") is None, reason="the extra rdf is not installed")
@given(formulas())
@settings(deadline=None)
def test_hostile_names_are_read_again_as_they_are(formula):
    try:
        normalise(formula)
        text = to_sparql(formula)
    except QueryError:
        assume(False)
    before, after = (
        {term for term in terms(f) if isinstance(term, Constant)} for f in (formula, parse(text))
    )
    assert after <= before
