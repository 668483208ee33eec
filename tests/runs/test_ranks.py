"""The ranks behind the averages."""

import dataclasses

import duckdb
import numpy as np
import pytest
import torch

from lmpnn_kge.errors import ConfigError, FileError
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.methods.rank import measure
from lmpnn_kge.methods.ranks import COLUMNS
from lmpnn_kge.queries.store import QueryStore, write_store

from ..toy_runs import train_tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory, toy_queries):
    return train_tiny(toy_queries, tmp_path_factory.mktemp("ranked") / "run")


def test_the_averages_of_ranks_are_the_results(run):
    ranks, results = run.ranks("test", limit=5), run.evaluate("test", limit=5)
    assert [*ranks.values] == [*results.types]
    for name, values in ranks.values.items():
        assert measure(values, ranks.queries[name].hard) == results.types[name]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(run, limit):
    for method in (run.ranks, run.evaluate):
        with pytest.raises(ConfigError, match=f"limit must be at least 1, not {limit}"):
            method("test", limit=limit)


def test_ranks_become_a_data_frame_with_the_question_of_each(run):
    pytest.importorskip("pandas", reason="the extra frames is not installed")
    ranks = run.ranks("test", limit=3)
    frame = ranks.to_frame()
    assert len(frame) == len(ranks)
    assert [*frame] == [*COLUMNS]
    by_query = (1 / frame["rank"]).groupby([frame["type"], frame["query"]]).mean()
    results = run.evaluate("test", limit=3)
    for name, mrr in by_query.groupby("type").mean().items():
        assert np.isclose(mrr, results.types[name].mrr)
    row = frame.iloc[0]
    assert row["answer"] in run.graph.answer(row["question"])


def rows_of(file):
    return duckdb.sql(f"FROM '{file}'").fetchall()


def test_a_file_of_ranks_has_a_row_for_each_hard_answer(run, tmp_path):
    results = run.evaluate("test", limit=4, ranks=tmp_path / "r.parquet")
    assert results == run.evaluate("test", limit=4)
    ranks = run.ranks("test", limit=4)
    rows = rows_of(tmp_path / "r.parquet")
    assert len(rows) == len(ranks)
    store = QueryStore.open(run.folder.provenance.queries.folder)
    (types, numbers, questions, answers, missing, found, scores, methods) = zip(*rows, strict=True)
    assert set(methods) == {"lmpnn"}
    assert np.array_equal(np.concatenate([*ranks.values.values()]), found)
    for name, number, question, answer, edges in zip(
        types, numbers, questions, answers, missing, strict=True
    ):
        queries = store.queries("test")[name]
        assert question == str(store.question(queries, number))
        hard = dict(zip(store.names(queries.hard.of(number)), range(100), strict=False))
        assert answer in hard
        first = queries.hard.offsets[number]
        assert edges == queries.hard.costs[first + hard[answer]]
    question, answer, score = questions[0], answers[0], scores[0]
    assert dict(run.rank(question, k=1000))[answer] == pytest.approx(score, abs=1e-6)


def test_csv_has_the_same_rows(run, tmp_path):
    ranks = run.ranks("test", limit=4)
    for name in ("r.parquet", "r.csv"):
        ranks.save(tmp_path / name)
    assert rows_of(tmp_path / "r.csv") == rows_of(tmp_path / "r.parquet")
    header = (tmp_path / "r.csv").read_text().splitlines()[0]
    assert header.split(",") == [*COLUMNS]


def test_the_number_of_a_query_is_that_in_its_store(run, tmp_path, toy_queries):
    """Although some queries are left out because the checkpoint lacks their names."""
    store = QueryStore.open(toy_queries)
    names = store.vocabulary
    ids = [*(f"new {id_}" for id_ in names.entity_ids[:3]), *names.entity_ids[3:]]
    other = dataclasses.replace(store, vocabulary=Vocabulary(ids, names.relation_ids))
    write_store(other, tmp_path / "other")
    fewer = run.ranks("test", queries=tmp_path / "other")
    assert len(fewer) < len(run.ranks("test"))
    for name, queries in fewer.queries.items():
        original = store.queries("test")[name]
        assert [str(fewer.store.question(queries, row)) for row in range(len(queries))] == [
            str(store.question(original, number)) for number in queries.numbers
        ]


def test_ranks_of_unknown_missing_edges_are_empty_there(run, tmp_path):
    ranks = run.ranks("test", limit=2)
    without = {
        name: dataclasses.replace(queries, hard=dataclasses.replace(queries.hard, costs=None))
        for name, queries in ranks.queries.items()
    }
    dataclasses.replace(ranks, queries=without).save(tmp_path / "r.parquet")
    assert {row[4] for row in rows_of(tmp_path / "r.parquet")} == {None}


def test_a_file_that_cannot_be_written_is_reported_before_the_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "from_numpy", None)  # nothing is ranked
    with pytest.raises(FileError, match=r"does not end in one of \.parquet, \.csv"):
        run.evaluate("test", ranks=tmp_path / "ranks.txt")
    (tmp_path / "r.csv").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        run.evaluate("test", ranks=tmp_path / "r.csv")
