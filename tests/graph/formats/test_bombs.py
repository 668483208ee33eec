"""Small files that would become large: compressed ones, entities of XML, devices that never end."""

import gzip
import os
import re
import shutil
import sys

import duckdb
import pytest

from lmpnn_kge.errors import DatasetError
from lmpnn_kge.graph.formats import streams
from lmpnn_kge.graph.formats.labels import read_labels
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph

from ...conftest import TOY

ROWS = {
    "tsv": b"a\tr\tb\n",
    "csv": b"a,r,b\n",
    "jsonl": b'{"head": "a", "relation": "r", "tail": "b"}\n',
    "nt": b"<http://x/a> <http://x/r> <http://x/b> .\n",
    "ttl": b"<http://x/a> <http://x/r> <http://x/b> .\n",
}


@pytest.fixture
def small(monkeypatch):
    """Limits so small that a test need not write much."""
    monkeypatch.setattr(streams, "FREE_BYTES", 10_000)
    monkeypatch.setattr(streams, "FREE_ROWS", 100)


@pytest.mark.parametrize("ending", ROWS)
def test_a_compressed_file_of_very_many_rows_is_refused(tmp_path, small, ending):
    if ending in ("nt", "ttl"):
        pytest.importorskip("pyoxigraph")
    file = tmp_path / f"bomb.{ending}.gz"
    file.write_bytes(gzip.compress(ROWS[ending] * 5_000))
    with pytest.raises(DatasetError, match=r"bomb.* (rows, over 2 for each|bytes, over 100 times)"):
        KnowledgeGraph.open(file)
    file.with_suffix("").write_bytes(ROWS[ending] * 5_000)
    KnowledgeGraph.open(file.with_suffix(""), header=False)  # which is as large as it is


@pytest.mark.parametrize("text", [b"\n" * 10**6, b"a\tr\t" + b"b" * 10**6 + b"\n"])
def test_a_compressed_file_of_very_many_bytes_is_refused(tmp_path, small, text):
    file = tmp_path / "bomb.tsv.gz"
    file.write_bytes(gzip.compress(text))
    with pytest.raises(DatasetError, match=r"bomb.* has more than|holds more than"):
        KnowledgeGraph.open(file, skip_bad=10)
    with pytest.raises(DatasetError, match=r"bomb.* has more than|holds more than"):
        read_labels(file)


def test_a_parquet_file_of_very_many_equal_rows_is_refused(tmp_path, small):
    file = tmp_path / "bomb.parquet"
    rows = "SELECT 'a' AS head, 'r' AS relation, 'b' AS tail FROM range(1000000)"
    duckdb.execute(f"COPY ({rows}) TO '{file}'")
    assert file.stat().st_size < 100_000
    with pytest.raises(DatasetError, match="rows, over 2 for each"):
        KnowledgeGraph.open(file)


XML = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [{entities}]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">
{body}</rdf:RDF>"""

TRIPLE = '<rdf:Description rdf:about="{0}a"><x:r rdf:resource="{0}b"/></rdf:Description>'

LAUGHS = '<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(n + 1)} "{f"&{chr(n)};" * 10}">' for n in range(97, 107)
)


@pytest.mark.parametrize(
    "entities",
    [
        LAUGHS,
        LAUGHS.replace("&", "&#38;"),
        f'<!ENTITY % p "x"> %p; {LAUGHS}',
        f'<!ENTITY a "{"ha" * 1000}">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
    ],
    ids=["nested", "nested by characters", "behind a parameter", "long", "another file"],
)
def test_entities_that_expand_are_refused(tmp_path, entities):
    pytest.importorskip("pyoxigraph")
    file = tmp_path / "bomb.rdf"
    file.write_text(XML.format(entities=entities, body=TRIPLE.format("http://x/&a;")))
    with pytest.raises(
        DatasetError, match=r"bomb\.rdf (declares an entity|line . is not readable RDF)"
    ):
        KnowledgeGraph.open(file)


def test_entities_that_shorten_iris_are_read(tmp_path):
    pytest.importorskip("pyoxigraph")
    file = tmp_path / "owl.rdf"
    padding = f"<!-- {'x' * 70_000} -->"  # so that the body is in another block
    entities = f'{padding}<!ENTITY x "http://x/"><!ENTITY y "http://y/">'
    file.write_text(XML.format(entities=entities, body=TRIPLE.format("&x;")))
    assert KnowledgeGraph.open(file).vocabulary.entity_ids == ["http://x/a", "http://x/b"]


ATTRIBUTES = " ".join(f"x:a{number}='1'" for number in range(2_000))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<rdf:Description><x:r>" * 1_000, "nests more than 1,000 elements"),
        (f"<rdf:Description {ATTRIBUTES}/>", "1,000 attributes"),
    ],
)
def test_xml_that_takes_the_square_of_its_size_is_refused(tmp_path, body, words):
    pytest.importorskip("pyoxigraph")
    file = tmp_path / "bomb.rdf"
    file.write_text(XML.format(entities="", body=body))
    with pytest.raises(DatasetError, match=words):
        KnowledgeGraph.open(file)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no /dev/zero")
@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl", ".parquet", ".nt", ".rdf", ".tsv.gz"])
def test_a_device_is_refused(tmp_path, ending):
    if ending in (".nt", ".rdf"):
        pytest.importorskip("pyoxigraph")
    link = tmp_path / f"endless{ending}"
    link.symlink_to("/dev/zero")
    with pytest.raises(DatasetError, match="cannot be read: It is a pipe or a device"):
        KnowledgeGraph.open(link)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no /dev/zero")
def test_a_device_as_standard_input_is_refused(monkeypatch):
    with open("/dev/zero") as zeros:
        monkeypatch.setattr(sys, "stdin", zeros)
        with pytest.raises(DatasetError, match="stdin is a device"):
            KnowledgeGraph.open("-", format="tsv")
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert KnowledgeGraph.open("-", format="tsv").num_entities == 0
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DatasetError, match="stdin is closed"):
        KnowledgeGraph.open("-", format="tsv")


def test_a_column_whose_name_is_not_unicode_is_refused(tmp_path):
    file = tmp_path / "a.parquet"
    duckdb.execute(f"COPY (SELECT 'a' AS head, 'r' AS relation, 'b' AS tail) TO '{file}'")
    file.write_bytes(file.read_bytes().replace(b"relation", b"rel\xd6tion"))
    with pytest.raises(DatasetError, match=r"a\.parquet"):
        KnowledgeGraph.open(file)


@pytest.mark.skipif(sys.platform == "win32", reason="files with holes take room there")
def test_a_hole_of_a_terabyte_is_refused(tmp_path):
    shutil.copytree(TOY / "dataset", tmp_path / "graph")
    os.truncate(tmp_path / "graph" / "entity_ids.del", 1 << 40)
    with pytest.raises(DatasetError, match=r"entity_ids.del line \d+ is longer than"):
        KnowledgeGraph.open(tmp_path / "graph")


@pytest.mark.skipif(sys.platform == "win32", reason="files with holes take room there")
@pytest.mark.parametrize("ending", ROWS)
def test_triples_with_a_hole_of_a_terabyte_after_them_are_refused(tmp_path, ending):
    if ending in ("nt", "ttl"):
        pytest.importorskip("pyoxigraph")
    file = tmp_path / f"a.{ending}"
    file.write_bytes(ROWS[ending])
    os.truncate(file, 1 << 40)
    with pytest.raises(DatasetError, match=re.escape(file.name)):
        KnowledgeGraph.open(file)
