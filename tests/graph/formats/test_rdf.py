"""RDF in and out, as pyoxigraph reads it."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge import DatasetError, KnowledgeGraph
from lmpnn_kge.graph.formats import rdf
from lmpnn_kge.graph.formats.ntriples import ntriples
from lmpnn_kge.graph.formats.reading import read_options
from lmpnn_kge.graph.formats.sources import read_source
from lmpnn_kge.graph.vocabulary import Vocabulary

from ...toy_runs import cli
from .test_tables import named, written

pyoxigraph = pytest.importorskip("pyoxigraph")

TURTLE = '''@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
PREFIX schema: <https://schema.org/>
@base <http://example.org/base/> .

# A comment, with "quotes" and <brackets>.
ex:aspirin a ex:Drug ;
    rdfs:label "Acétylsalicylique"@fr , "Aspirin"@en , "Aspirin (GB)"@en-GB ;
    ex:note """two
lines with \\"quotes\\" and a # sign""" ;
    ex:since 1899 ; ex:dose 0.5 ; ex:free true ;
    ex:inhibits ex:COX1, <COX2> ;
    ex:made_of [ ex:part ex:benzene ; ex:part [ ex:part ex:acid ] ] .
_:trial ex:tests ex:aspirin ; schema:name "A   trial" .
ex:steps ex:list ( ex:one ex:two ) .
<#me> ex:knows <http://example.org/caf\\u00E9> .
ex:inhibits rdfs:label "inhibits" .
ex:COX1 skos:prefLabel "Cyclooxygenase 1" ; rdfs:label "COX 1" .
'''


def canonical(triples):
    """The triples of a text, in which no name of a blank node counts."""
    dataset = pyoxigraph.Dataset(pyoxigraph.Quad(*triple) for triple in triples)
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad) for quad in dataset}


def term(name):
    blank = name.startswith("_:")
    return pyoxigraph.BlankNode(name[2:]) if blank else pyoxigraph.NamedNode(name)


def expected(content, format, base="file:///"):
    """What pyoxigraph reads, without literals."""
    quads = pyoxigraph.parse(content, format, base_iri=base)
    return [
        (q.subject, q.predicate, q.object)
        for q in quads
        if not isinstance(q.object, pyoxigraph.Literal)
    ]


def ours(file, **options):
    triples = named(read_source(file, read_options(options)).numbered)
    return [(term(s), pyoxigraph.NamedNode(p), term(o)) for s, p, o in triples]


def test_turtle_is_read_as_pyoxigraph_reads_it(tmp_path):
    file = written(tmp_path, "a.ttl", TURTLE)
    known = expected(TURTLE.encode(), pyoxigraph.RdfFormat.TURTLE)
    assert len(known) == 14
    assert canonical(ours(file)) == canonical(known)


@pytest.mark.parametrize(
    ("ending", "format"),
    [("nt", "N_TRIPLES"), ("nq", "N_QUADS"), ("trig", "TRIG"), ("rdf", "RDF_XML"),
     ("jsonld", "JSON_LD"), ("ttl", "TURTLE"), ("nt.gz", "N_TRIPLES")],
)  # fmt: skip
def test_every_format_holds_the_same_graph(tmp_path, ending, format):
    known = list(
        pyoxigraph.parse(TURTLE.encode(), pyoxigraph.RdfFormat.TURTLE, base_iri="file:///")
    )
    triples = [pyoxigraph.Triple(q.subject, q.predicate, q.object) for q in known]
    content = pyoxigraph.serialize(triples, format=getattr(pyoxigraph.RdfFormat, format))
    content = gzip.compress(content) if ending.endswith("gz") else content
    graph = KnowledgeGraph.open(written(tmp_path, f"graph.{ending}", content))
    assert graph.name == "graph"
    assert canonical(ours(graph.folder)) == canonical(
        expected(TURTLE.encode(), pyoxigraph.RdfFormat.TURTLE)
    )
    assert (
        graph.vocabulary.label(graph.vocabulary.entity("http://example.org/aspirin")) == "Aspirin"
    )


def test_labels_prefer_the_language_then_the_property_and_else_a_prefix(tmp_path):
    file = written(tmp_path, "a.ttl", TURTLE)
    names = KnowledgeGraph.open(file).vocabulary
    labels = dict(zip(names.entity_ids, names.entity_labels, strict=True))
    assert labels["http://example.org/aspirin"] == "Aspirin"
    assert labels["http://example.org/COX1"] == "Cyclooxygenase 1"
    assert labels["_:trial"] == "A trial"
    assert labels["http://example.org/benzene"] == "ex:benzene"
    assert labels["http://example.org/base/COX2"] is None
    assert names.relation_label(names.relation("ex:made_of")) == "ex:made_of"
    assert names.relation_label(names.relation("http://example.org/inhibits")) == "inhibits"
    french = KnowledgeGraph.open(file, language="fr").vocabulary
    assert french.entity("Acétylsalicylique") == names.entity("Aspirin")
    assert KnowledgeGraph.open(file).answer("ex:part(?, ex:benzene)") == ["_:genid1"]


def test_literals_are_left_out_and_counted(tmp_path):
    graph = KnowledgeGraph.open(written(tmp_path, "a.ttl", TURTLE))
    assert graph.notes == (
        f"{graph.folder}: 4 triples with a literal are left out, such as those of "
        "http://example.org/note",
    )


def test_a_file_with_nodes_without_names_is_the_same_graph_each_time(tmp_path):
    file = written(tmp_path, "a.ttl", TURTLE)
    assert KnowledgeGraph.open(file).fingerprint == KnowledgeGraph.open(file).fingerprint


def test_blank_nodes_of_two_files_are_different(tmp_path):
    line = '_:x <http://a.org/r> <http://a.org/b> .\n_:x <http://schema.org/name> "ex" .\n'
    files = [written(tmp_path, f"{n}.nt", line) for n in (1, 2)]
    graph = KnowledgeGraph.from_triples(files, valid=0, test=0)
    assert graph.entity_ids == ["_:file2.x", "_:x", "http://a.org/b"]
    assert graph.vocabulary.entity_labels == ["ex", "ex", None]


LINES = [
    "<http://a.org/x> <http://a.org/r> <http://a.org/y> .",
    "<http://a.org/x><http://a.org/r><http://a.org/y>.",
    "  <http://a.org/é> <http://a.org/r#1> <urn:isbn:1> . # comment",
    "<http://a.org/%41b> <kge:r> <kge:South%20Sudan> .",
    "<http://a.org:80/x> <http://a.org/r> _:b1 .",
    '<http://a.org/x> <http://a.org/p> "lit . \\" <a>"@en .',
    "<http://a.org/x\\u00e9> <http://a.org/r> <http://a.org/y> .",
    "# <http://a.org/x> <http://a.org/r> <http://a.org/comment> .",
    "",
    "<kge:%09> <kge:r> <kge:%ff> .",
]
WRONG = [
    "<http://a.org/x> <http://a.org/r> .",
    "<http://a.org/x y> <http://a.org/r> <http://a.org/y> .",
    "<x> <http://a.org/r> <http://a.org/y> .",
    "<http://a.org/%4> <http://a.org/r> <http://a.org/y> .",
    "<http://a.org/x> <http://a.org/r> <http://a.org/y> . .",
    "<http://a.org/x> _:r <http://a.org/y> .",
    "<http://a.org/x#a#b> <http://a.org/r> <http://a.org/y> .",
]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from([*LINES, *LINES, *WRONG]), max_size=8), st.sampled_from(["\n", "\r\n"])
)
def test_n_triples_by_columns_are_what_the_parser_reads(tmp_path_factory, lines, end):
    content = end.join(lines).encode()
    file = tmp_path_factory.mktemp("rdf") / "a.nt"
    file.write_bytes(content)
    try:
        known = expected(content, pyoxigraph.RdfFormat.N_TRIPLES, None)
    except SyntaxError as error:
        with pytest.raises(DatasetError, match=rf"a\.nt line {error.lineno} is not readable RDF"):
            read_source(file)
        return
    found = named(read_source(file).numbered)
    names = [
        [rdf._name(str(t)[1:-1]) if str(t)[0] == "<" else str(t) for t in row] for row in known
    ]
    assert sorted(map(tuple, names)) == sorted(found)


@pytest.mark.parametrize("line", LINES)
def test_a_line_by_columns_is_plain(line, tmp_path):
    """Most lines of real files are: this is what makes reading fast."""
    fast = rdf.read_plain(written(tmp_path, "a.nt", f"{line}\n"))
    if line in (LINES[0], LINES[3]):
        assert len(fast[0]) == 1
        assert not fast[1]
    elif line and line not in (LINES[9],):
        assert not len(fast[0])


@pytest.mark.parametrize("ending", ["ttl", "nt", "rdf", "jsonld", "trig", "nq"])
def test_what_is_not_rdf_is_refused_with_its_line(tmp_path, ending):
    with pytest.raises(DatasetError, match=rf"a\.{ending}.* is not readable RDF: "):
        read_source(written(tmp_path, f"a.{ending}", "\n<a> {{ no\n"))
    with pytest.raises(DatasetError, match=rf"a\.{ending} cannot be read: No such file"):
        read_source(tmp_path / "none" / f"a.{ending}")


names = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\n\r\0"), min_size=1
)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(names, min_size=3, max_size=3, unique=True), st.lists(st.one_of(st.none(), st.text()))
)
def test_what_is_written_as_n_triples_is_read_as_the_same_graph(tmp_path_factory, ids, labels):
    labels = [*labels, None, None, None][:3]
    vocabulary = Vocabulary(ids, ids[:1], labels)
    triples = np.array([[0, 0, 1], [1, 0, 2]])
    file = tmp_path_factory.mktemp("rdf") / "out.nt"
    file.write_text("".join(ntriples(vocabulary, triples)), encoding="utf-8", newline="\n")
    source = read_source(file)
    wanted = [(ids[0], ids[0], ids[1]), (ids[1], ids[0], ids[2])]
    assert sorted(named(source.numbered)) == sorted(wanted)


def test_labels_are_written_beside_the_triples(tmp_path):
    vocabulary = Vocabulary(["a b", "http://x.org/y"], ["r"], ['A "b"\n', None], ["r"])
    assert "".join(ntriples(vocabulary, np.array([[0, 0, 1]]))) == (
        "<kge:a%20b> <kge:r> <http://x.org/y> .\n"
        '<kge:a%20b> <http://www.w3.org/2000/01/rdf-schema#label> "A \\"b\\"\\n" .\n'
    )


def test_the_edges_of_answers_are_n_triples(tmp_path):
    file = written(tmp_path, "a.tsv", "a\tr\tb\nb\ts\tc d\na\tr\tx\n")
    found = cli("answer", "r(a, ?x) & s(?x, ?) & !r(?, a)", "--dataset", file, "--ntriples").stdout
    assert found == "<kge:a> <kge:r> <kge:b> .\n<kge:b> <kge:s> <kge:c%20d> .\n"
    assert cli("answer", "r(b, ?)", "--dataset", file, "--ntriples").stdout == ""
    cli("answer", "r(a, ?)", "--dataset", file, "--ntriples", "--json", code=2)


def test_predictions_are_n_triples(tmp_path):
    from lmpnn_kge.runs.predictions import Predictions

    names = Vocabulary(["a", "http://x.org/b"], ["r"], ["Anna", None])
    predictions = Predictions(names, np.array([[0, 0, 1]]), np.array([0.5]), [None])
    predictions.save(tmp_path / "new.nt")
    assert named(read_source(tmp_path / "new.nt").numbered) == [("a", "r", "http://x.org/b")]
    assert read_source(tmp_path / "new.nt").labelled.labels == {"a": "Anna"}


def test_without_pyoxigraph_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyoxigraph", None)
    with pytest.raises(DatasetError, match=r"is RDF, which needs the extra rdf: run `pip install"):
        read_source(written(tmp_path, "a.ttl", TURTLE))


def test_a_parser_reads_a_stream_and_not_the_whole_file_at_once():
    """pyoxigraph asks for a part of a stream at a time."""

    class Counted(io.BytesIO):
        most = 0

        def read(self, size=-1):
            self.most = max(self.most, size if size >= 0 else 1 << 40)
            return super().read(size)

    stream = Counted((LINES[0] + "\n").encode() * 20_000)
    assert sum(1 for _ in pyoxigraph.parse(stream, pyoxigraph.RdfFormat.N_TRIPLES)) == 20_000
    assert stream.most < 1 << 20
