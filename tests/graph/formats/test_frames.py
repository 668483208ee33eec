"""Triples in memory and in Parquet files, and back as a frame."""

import numpy as np
import pytest

from lmpnn_kge import DatasetError, KnowledgeGraph
from lmpnn_kge.graph.formats.reading import read_options
from lmpnn_kge.graph.formats.sources import read_source

from .test_tables import TRIPLES, named, read


def test_triples_come_from_an_iterable_a_list_or_an_array():
    assert read(iter(TRIPLES)) == TRIPLES
    assert read([list(triple) for triple in TRIPLES]) == TRIPLES
    assert read(np.array(TRIPLES)) == TRIPLES
    assert read(np.array([[0, 0, 1], [1, 0, 2]])) == [("0", "0", "1"), ("1", "0", "2")]
    assert read([("a", "b"), ("b", "c")], relation="r") == TRIPLES[:2]
    assert read([(1.5, "a", "r", "b")], columns="2,3,4") == [("a", "r", "b")]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("a", "r", "b"), ("a", "r")], "row 2 has 2 columns instead of 3"),
        ([("a", "r", "b"), ("a", "", "b")], "row 2 must be .* its relation is empty"),
        ([("a", "r", 1.5)], "row 1 must be .* its tail is empty"),
        ([("a", "r", None)], "row 1 must be .* its tail is empty"),
        ([("a", "r", "\ud800")], "row 1 must be .* its tail is not Unicode text"),
        (["arb"], "row 1 must be a head, a relation and a tail .* but has one column"),
        (7, "a int holds no triples; give a path, a DataFrame, or rows"),
    ],
)
def test_rows_that_are_no_triples_are_refused(rows, words):
    with pytest.raises(DatasetError, match=words):
        read(iter(rows) if isinstance(rows, list) and isinstance(rows[0], str) else rows)


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas")
    heads, relations, tails = zip(*TRIPLES, strict=True)
    return pandas.DataFrame({"weight": 0.5, "tail": tails, "relation": relations, "head": heads})


def test_a_frame_is_read_by_its_columns(frame):
    source = read_source(frame)
    assert named(source.numbered) == TRIPLES
    assert source.notes == ("the table: the columns weight are ignored",)
    renamed = frame.rename(columns={"head": "a b", "relation": '"', "tail": "c;"})
    assert read(renamed, columns=["a b", '"', "c;"]) == TRIPLES
    assert read(frame.astype({"relation": "category"})) == TRIPLES


def test_a_frame_with_gaps_or_other_types_is_refused(frame):
    with pytest.raises(DatasetError, match="the column 'weight' is DOUBLE; names must be text or"):
        read(frame, columns="head,weight,tail")
    frame.loc[1, "tail"] = None
    with pytest.raises(DatasetError, match=r"the table row 2 must be .* its tail is empty"):
        read(frame)
    assert read(frame, skip_bad=1) == [TRIPLES[0], TRIPLES[2]]


def test_a_parquet_file_is_read(frame, tmp_path):
    pytest.importorskip("pyarrow")
    file = tmp_path / "a*.parquet"
    frame.to_parquet(file)
    assert read(file) == TRIPLES
    with pytest.raises(DatasetError, match=r"none\.parquet cannot be read: No such file"):
        read(tmp_path / "none.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DatasetError, match="is not a readable Parquet file: "):
        read(file)


def test_a_table_of_arrow_is_read(frame):
    pyarrow = pytest.importorskip("pyarrow")
    assert read(pyarrow.Table.from_pandas(frame)) == TRIPLES


def test_the_triples_of_a_graph_are_a_frame_and_that_frame_is_the_graph(frame, tmp_path):
    labels = {"a": "Anna", "r": "knows"}
    graph = KnowledgeGraph.from_triples(frame, valid=0, test=0, labels=labels, name="tiny")
    table = graph.triples_frame()
    assert list(table.columns) == [
        "head", "relation", "tail", "head_label", "relation_label", "tail_label", "split"
    ]  # fmt: skip
    table = table.fillna("")
    assert table.iloc[0].tolist() == ["a", "r", "b", "Anna", "knows", "", "train"]
    assert len(graph.triples_frame("test")) == 0
    again = KnowledgeGraph.from_triples(table, valid=0, test=0, name="tiny")
    assert again.fingerprint == graph.fingerprint


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(DatasetError, match="there is no option 'colunms'"):
        read_options({"colunms": 1})
