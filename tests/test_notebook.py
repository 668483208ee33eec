"""What notebooks show: DataFrames and HTML, without a way out of the HTML."""

import base64
import re
import subprocess
import sys

import numpy as np
import pytest

from lmpnn_kge import Answer, KnowledgeGraph, Predictions, Results, parse
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.methods.results import TypeResult
from lmpnn_kge.notebook import html_table
from lmpnn_kge.query.draw import draw
from lmpnn_kge.query.parser import parse_any
from lmpnn_kge.runs.answer import AnswerList

HOSTILE = "<script>alert('x')</script>\x1b[31m & \"more\""

ANSWERS = AnswerList(
    "r(a, ?)",
    [Answer("b", "Bee", 1.5, 0.25, False, True), Answer(HOSTILE, HOSTILE, 0.5, None, True, True)],
    [f"a note on {HOSTILE}"],
    estimated=True,
)
RESULTS = Results(
    "test",
    {
        "1p": TypeResult(0.5, {1: 0.4, 10: 0.9}, 20, {1: (0.5, 30)}),
        "2in": TypeResult(0.25, {1: 0.1, 10: 0.8}, 10, {}),
    },
)
PREDICTIONS = Predictions(
    Vocabulary(["a", HOSTILE], ["r"]), np.array([(0, 0, 1)]), np.array([0.75]), ["test"]
)


@pytest.mark.parametrize("value", [ANSWERS, PREDICTIONS], ids=["answers", "predictions"])
def test_names_cannot_break_out_of_the_html(value):
    page = value._repr_html_()
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page


def test_answers_have_a_row_each_with_their_figures_and_notes():
    page = ANSWERS._repr_html_()
    assert page.count("<tr>") == 3
    assert "<th>probability</th>" in page
    assert "<td>25.0%</td><td>Bee</td><td>b</td>" in page
    assert "<p>a note on" in page


def test_results_are_shown_in_percent():
    page = RESULTS._repr_html_()
    assert "<th>1p</th><th>2in</th>" in page
    assert "<td>MRR</td><td>50.0</td><td>25.0</td>" in page
    assert "<td>Hits@10</td><td>90.0</td><td>80.0</td>" in page


def test_a_formula_is_drawn_and_its_styles_stay_inside():
    formula = parse("borders(Germany, ?) & !currency(?, Euro)")
    page = formula._repr_html_()
    (data,) = re.findall(r"base64,([^\"]+)", page)
    assert base64.b64decode(data).decode() == draw(formula)
    assert "<style" not in page


def test_a_formula_without_a_query_graph_is_text():
    assert parse_any("r(a, ?x) & s(?y, b)")._repr_html_().startswith("<code>r(a, ?x)")


def test_a_graph_shows_its_profile(toy_dataset):
    page = KnowledgeGraph.open(toy_dataset)._repr_html_()
    assert "<b>toykg</b>: 40 entities, 6 relations, 381 triples" in page
    assert "<td>friend of</td><td>104</td>" in page


def test_cells_are_escaped():
    assert (
        html_table(["<"], [["&"]]) == "<table><tr><th>&lt;</th></tr><tr><td>&amp;</td></tr></table>"
    )


def test_values_become_data_frames(toy_dataset):
    pytest.importorskip("pandas", reason="the extra frames is not installed")
    answers = ANSWERS.to_frame()
    assert answers["id"].tolist() == ["b", HOSTILE]
    assert answers["probability"].isna().tolist() == [False, True]
    assert answers["mark"].tolist() == [answer.mark for answer in ANSWERS]
    results = RESULTS.to_frame()
    assert [*results] == ["type", "mrr", "hits@1", "hits@10", "queries"]
    assert results.set_index("type").loc["2in", "hits@10"] == 0.8
    assert PREDICTIONS.to_frame()["tail"].tolist() == [HOSTILE]
    graph = KnowledgeGraph.open(toy_dataset)
    assert graph.describe().to_frame()["triples"].sum() == 381
    exact = graph.answer_frame("friend_of(person/ada_voss, ?)")
    assert exact["id"].tolist() == graph.answer("friend_of(person/ada_voss, ?)")
    assert exact["label"][0] == "Sven Ekdal"
    assert AnswerList("r(a, ?)").to_frame().empty


def test_without_pandas_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from lmpnn_kge import LmpnnError, Results\n"
        "try: Results('test', {}).to_frame()\n"
        "except LmpnnError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "a DataFrame needs pandas: run `pip install 'lmpnn-kge[frames]'`\n"
