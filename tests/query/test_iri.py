"""Names and IRIs: every name has an IRI of its own, which leads back to it."""

from importlib.util import find_spec

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.iri import iri_of, is_iri, name_of

hostile = st.text(max_size=12) | st.text("ab:/.%#?_-é ", max_size=8)


@given(hostile)
@example("")
@example("..")
@example("a/./../b")
@example("//host:port/x")
@example("kge:Germany")
@example("kge:kge:")
@example("http://example.org/a b")
@example("http://[::1")
@example("%41")
@example("http://x/%zz")
@example('\x00\n\r\t\x1b<>"{}|\\^`')
@example("\ue000\ufffe\U0010ffff")
def test_the_iri_of_a_name_leads_back_to_it(name):
    assert name_of(iri_of(name)) == name


@pytest.mark.skipif(find_spec("pyoxigraph") is None, reason="the extra rdf is not installed")
@given(hostile)
@example("//host:port/x")
@example("http://[::1")
@example("http://x:y/")
@example("a:#b#c")
@example("\ue000\ufffe\U0010ffff")
@settings(deadline=None)
def test_the_iri_of_a_name_is_one_for_a_strict_reader(name):
    import pyoxigraph

    line = f"<{iri_of(name)}> <kge:r> <kge:x> ."
    (quad,) = pyoxigraph.parse(line.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    assert name_of(quad.subject.value) == name
    (row,) = pyoxigraph.Store().query(f"SELECT ?a {{ VALUES ?a {{ <{iri_of(name)}> }} }}")
    assert name_of(row[0].value) == name


@pytest.mark.parametrize(
    ("name", "iri"),
    [
        ("Germany", "kge:Germany"),
        ("South Sudan", "kge:South%20Sudan"),
        ("Côte d'Ivoire", "kge:Côte%20d'Ivoire"),
        ("person/ada_voss", "kge:person/ada_voss"),
        ("/m/0f8l9c", "kge:/m/0f8l9c"),
        ("http://www.wikidata.org/entity/Q42", "http://www.wikidata.org/entity/Q42"),
        ("urn:isbn:0451450523", "urn:isbn:0451450523"),
        ("http://example.org/é?q=1#x", "http://example.org/é?q=1#x"),
        ("100% wool", "kge:100%25%20wool"),
    ],
)
def test_names_stay_readable_in_their_iris(name, iri):
    assert iri_of(name) == iri
    assert is_iri(name) == (name == iri)


def test_a_relative_iri_is_a_name_with_percent_encoding():
    assert name_of("Germany") == "Germany"
    assert name_of("/m/0f8l9c") == "/m/0f8l9c"
    assert name_of("South%20Sudan") == "South Sudan"


def test_percent_encoding_that_is_not_utf8_is_refused():
    with pytest.raises(QueryError, match="not UTF-8"):
        name_of("%ff")
