"""Results in the formats of SPARQL 1.1, read back by rdflib."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.serve.sparql_results import (
    FORMATS,
    Solutions,
    Value,
    entity_value,
    literal,
    to_csv,
    to_json,
    to_tsv,
    to_xml,
)

rdflib = pytest.importorskip("rdflib", reason="the extra rdf is not installed")

MARKUP = "<img src=x onerror=alert(1)>"

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [MARKUP, "a\tb", 'quoted "x"', "line\r\nend", "back\\slash\\n", "a,b", "", " padded ", "é€𝄞"]
)
VALUES = st.one_of(
    st.none(),
    TEXTS.filter(bool).map(entity_value),
    TEXTS.map(lambda label: entity_value(f"_:{label}")),
    TEXTS.map(literal),
    st.booleans().map(literal),
    st.floats(allow_nan=False, allow_infinity=False).map(literal),
)
SOLUTIONS = st.lists(st.tuples(VALUES, VALUES), max_size=5).map(
    lambda rows: Solutions(("x", "score"), rows)
)


def expected(value: Value | None):
    """The value as rdflib has it."""
    if value is None:
        return None
    if value.type == "literal":
        datatype = None if value.datatype is None else rdflib.URIRef(value.datatype)
        return rdflib.Literal(value.text, datatype=datatype)
    return rdflib.URIRef(value.text) if value.type == "uri" else rdflib.BNode


def read(text: str, format_: str):
    """The rows of a result as rdflib reads them; the labels of blank nodes do not matter."""
    result = rdflib.query.Result.parse(io.BytesIO(text.encode()), format=format_)
    assert [str(name) for name in result.vars] == ["x", "score"]
    return [
        tuple(
            rdflib.BNode if isinstance(binding.get(name), rdflib.BNode) else binding.get(name)
            for name in result.vars
        )
        for binding in result.bindings
    ]


@settings(deadline=None)
@given(SOLUTIONS)
def test_json_has_every_value_with_its_type(solutions):
    assert read(to_json(solutions), "json") == [tuple(map(expected, row)) for row in solutions.rows]


@settings(deadline=None)
@given(SOLUTIONS)
def test_xml_has_every_value_but_for_characters_that_xml_cannot_have(solutions):
    def replaced(value):
        if value is None or value.type != "literal":
            return expected(value)
        text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", value.text)
        return expected(Value("literal", text, value.datatype))

    assert read(to_xml(solutions), "xml") == [tuple(map(replaced, row)) for row in solutions.rows]


@settings(deadline=None)
@given(SOLUTIONS)
def test_csv_has_the_text_of_every_value(solutions):
    header, *rows = csv.reader(io.StringIO(to_csv(solutions), newline=""))
    assert header == ["x", "score"]
    assert rows == [
        ["" if v is None else f"_:{v.text}" if v.type == "bnode" else v.text for v in row]
        for row in solutions.rows
    ]


@settings(deadline=None)
@given(SOLUTIONS)
def test_tsv_has_every_value_as_turtle_writes_it(solutions):
    header, *lines = to_tsv(solutions).removesuffix("\n").split("\n")
    assert header == "?x\t?score"
    for line, row in zip(lines, solutions.rows, strict=True):
        for cell, value in zip(line.split("\t"), row, strict=True):
            assert (cell == "") == (value is None)
            if value is not None:
                graph = rdflib.Graph().parse(data=f"<a:a> <a:b> {cell} .", format="turtle")
                (found,) = graph.objects()
                is_blank = isinstance(found, rdflib.BNode)
                assert (rdflib.BNode if is_blank else found) == expected(value)


def test_different_blank_nodes_stay_different():
    labels = ["", "_", "a", "a_", "a.b", "a_2e_b", "é", "<", "_3c_"]
    texts = {entity_value(f"_:{label}").text for label in labels}
    assert len(texts) == len(labels)
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", text) for text in texts)


def test_a_name_with_markup_is_text_in_every_format():
    solutions = Solutions(("x", "label"), [(entity_value(MARKUP), literal(MARKUP))])
    assert json.loads(to_json(solutions))["results"]["bindings"] == [
        {
            "x": {"type": "uri", "value": "kge:%3Cimg%20src=x%20onerror=alert(1)%3E"},
            "label": {"type": "literal", "value": MARKUP},
        }
    ]
    tags = {
        element.tag.partition("}")[2]
        for element in ElementTree.fromstring(to_xml(solutions)).iter()
    }
    assert "img" not in tags
    assert "literal" in tags


def test_a_value_that_does_not_exist_is_not_bound():
    solutions = Solutions(("x", "score"), [(entity_value("a"), literal(None))])
    assert "score" not in json.loads(to_json(solutions))["results"]["bindings"][0]
    assert to_xml(solutions).count("<binding") == 1
    assert to_csv(solutions) == "x,score\r\nkge:a,\r\n"
    assert to_tsv(solutions) == "?x\t?score\n<kge:a>\t\n"


def test_the_four_formats_of_the_standard_are_written():
    assert [format_.name for format_ in FORMATS] == ["json", "xml", "csv", "tsv"]
