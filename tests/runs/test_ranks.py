"""The ranks behind the averages."""

import numpy as np
import pytest

from lmpnn_kge.methods.rank import measure

from ..toy_runs import train_tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory, toy_queries):
    return train_tiny(toy_queries, tmp_path_factory.mktemp("ranked") / "run")


def test_the_averages_of_ranks_are_the_results(run):
    ranks, results = run.ranks("test", limit=5), run.evaluate("test", limit=5)
    assert [*ranks.values] == [*results.types]
    for name, values in ranks.values.items():
        assert measure(values, ranks.queries[name].hard) == results.types[name]


def test_ranks_become_a_data_frame_with_the_question_of_each(run):
    pytest.importorskip("pandas", reason="the extra frames is not installed")
    ranks = run.ranks("test", limit=3)
    frame = ranks.to_frame()
    assert len(frame) == len(ranks)
    assert [*frame] == ["type", "query", "question", "answer", "missing", "rank"]
    by_query = (1 / frame["rank"]).groupby([frame["type"], frame["query"]]).mean()
    results = run.evaluate("test", limit=3)
    for name, mrr in by_query.groupby("type").mean().items():
        assert np.isclose(mrr, results.types[name].mrr)
    row = frame.iloc[0]
    assert row["answer"] in run.graph.answer(row["question"])
