"""Results keep all their numbers as JSON, and show them within the width of a terminal."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from lmpnn_kge.errors import RunError
from lmpnn_kge.methods.counting import Counting, CountResult
from lmpnn_kge.methods.results import Results, TypeResult, compare
from lmpnn_kge.query.patterns import BETAE, NEGATIVE, POSITIVE


def made_up(mrr: float, **changes) -> TypeResult:
    return TypeResult(**{"mrr": mrr, "hits": {1: 0.1, 3: 0.2, 10: 0.3}, "queries": 7,
                         "by_missing": {}, **changes})  # fmt: skip


def all_types() -> dict[str, TypeResult]:
    return {name: made_up(number / 100) for number, name in enumerate(BETAE)}


def results(**mrr: float) -> Results:
    return Results("test", {name.lstrip("_"): made_up(value) for name, value in mrr.items()})


# Averages


def test_the_paper_averages_nine_types_without_negation_and_five_with_it():
    assert (*POSITIVE, *NEGATIVE) == tuple(BETAE)
    assert [name for name in BETAE if "!" in BETAE[name]] == list(NEGATIVE)
    every = Results("test", all_types())
    assert every.positive == every.mrr["A_P"] == pytest.approx(sum(range(9)) / 9 / 100)
    assert every.negative == every.mrr["A_N"] == pytest.approx(sum(range(9, 14)) / 5 / 100)
    assert every.mean == pytest.approx(sum(range(14)) / 14 / 100)


@pytest.mark.parametrize(("missing", "none", "some"), [("2u", "A_P", "A_N"), ("pni", "A_N", "A_P")])
def test_an_average_of_fewer_types_is_none(missing, none, some):
    types = all_types()
    del types[missing]
    fewer = Results("test", types)
    assert fewer.to_json()[none] is None
    assert fewer.to_json()[some] is not None
    assert none not in fewer.mrr
    assert none not in str(fewer)
    assert some in str(fewer)
    assert Results("test", {}).positive is None


# JSON


def test_json_has_everything_and_survives_writing_and_reading():
    two = Results("valid", {"2p": made_up(0.25, by_missing={1: (0.5, 3), 2: (0.125, 4)})})
    content = {
        "split": "valid",
        "types": {
            "2p": {
                "mrr": 0.25,
                "hits@1": 0.1,
                "hits@3": 0.2,
                "hits@10": 0.3,
                "queries": 7,
                "missing_edges": {
                    "1": {"mrr": 0.5, "answers": 3},
                    "2": {"mrr": 0.125, "answers": 4},
                },
            }
        },
        "A_P": None,
        "A_N": None,
    }
    assert json.dumps(two.to_json()) == json.dumps(content)  # in this order
    assert Results.from_json(json.loads(json.dumps(content)), "file.json") == two


def counting(**errors: float) -> Counting:
    return Counting(
        dict.fromkeys(errors, 7), {"predicted": {n: CountResult(e, 0.5) for n, e in errors.items()}}
    )


def test_intervals_and_numbers_of_answers_survive_and_are_shown():
    some = replace(
        results(_1p=0.5, _2p=0.25),
        intervals={"1p": (0.4, 0.58), "2p": (0.2, 0.3)},
        counting=counting(**{"1p": 1.25, "2p": 0.5}),
    )
    content = json.loads(json.dumps(some.to_json()))
    assert content["intervals"] == {"1p": [0.4, 0.58], "2p": [0.2, 0.3]}
    assert Results.from_json(content, "file.json") == some
    lines = [" ".join(line.split()) for line in str(some).splitlines()]
    assert "± 9.0 5.0" in lines
    assert "MAPE, predicted 125.0 50.0" in lines
    assert "ρ, predicted 50.0 50.0" in lines


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"intervals": {"1p": [0.4]}}, "is not an interval"),
        ({"intervals": {"1p": [0.4, 1.5]}}, "is not between 0 and 1"),
        ({"intervals": []}, "is not a mapping"),
        ({"counting": {"queries": {"1p": 7}}}, "does not compare numbers"),
    ],
)
def test_damaged_intervals_and_numbers_are_refused(changes, reason):
    with pytest.raises(RunError, match=f"^file.json is damaged: .*{reason}"):
        Results.from_json({**results(_1p=0.5).to_json(), **changes}, "file.json")


def test_all_types_survive_with_their_averages_bit_for_bit():
    every = Results("test", all_types())
    content = json.loads(json.dumps(every.to_json()))
    again = Results.from_json(content, "file.json")
    assert again.to_json() == content
    assert (again.positive, again.negative) == (content["A_P"], content["A_N"])


def changed(path: list[str], value: object) -> dict:
    """Valid JSON in which one value is another one; None removes it."""
    content = json.loads(json.dumps(Results("test", {"2p": made_up(0.25)}).to_json()))
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    if value is None:
        del inner[path[-1]]
    return content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], "[] is not a mapping"),
        ({}, "no 'types'"),
        (changed(["types"], {}), "no types"),
        (changed(["types"], [1]), "[1] is not a mapping"),
        (changed(["split"], None), "no 'split'"),
        (changed(["A_N"], None), "no 'A_N'"),
        (changed(["A_N"], 7), "7.0 is not between 0 and 1"),
        (changed(["types", "2p", "mrr"], None), "no 'mrr'"),
        (changed(["types", "2p", "mrr"], float("nan")), "nan is not a number"),
        (changed(["types", "2p", "mrr"], True), "True is not a number"),
        (changed(["types", "2p", "mrr"], "0.5"), "0.5 is not a number"),
        (changed(["types", "2p", "hits@1"], -1), "-1.0 is not between 0 and 1"),
        (changed(["types", "2p", "hits@one"], 1), "invalid literal"),
        (changed(["types", "2p", "queries"], 1.5), "1.5 is not a count"),
        (changed(["types", "2p", "missing_edges"], {"1": 2}), "2 is not a mapping"),
    ],
)
def test_something_else_is_refused_with_its_source_and_the_reason(content, reason):
    with pytest.raises(RunError) as error:
        Results.from_json(content, "file.json")
    assert str(error.value).startswith(f"file.json is damaged: it holds no metrics ({reason}")


# Text


def test_text_has_types_without_negation_then_with_it_then_all_others():
    some = {
        "2in": made_up(0.034),
        "mine": made_up(0.5),
        "1p": made_up(0.456, by_missing={1: (0.4, 3), 2: (0.3, 1)}),
        "2p": made_up(0.4, by_missing={1: (0.2, 3)}),
    }
    assert Results("test", some).to_text().splitlines() == [
        "       1p    2p",
        "MRR  45.6  40.0",
        "",
        "      2in",
        "MRR   3.4",
        "",
        "     mine",
        "MRR  50.0",
        "",
        "           1p    2p",
        "Hits@1   10.0  10.0",
        "Hits@3   20.0  20.0",
        "Hits@10  30.0  30.0",
        "",
        "          2in",
        "Hits@1   10.0",
        "Hits@3   20.0",
        "Hits@10  30.0",
        "",
        "         mine",
        "Hits@1   10.0",
        "Hits@3   20.0",
        "Hits@10  30.0",
        "",
        "             1p    2p",
        "1 missing  40.0  20.0",
        "2 missing  30.0     –",
    ]


def test_the_row_of_the_paper_is_two_blocks_that_fit_a_terminal():
    text = compare({"LMPNN": [Results("test", all_types())], "frequency": [results(_1p=1.0)]})
    assert [line.split() for line in text.splitlines() if line.startswith(" ")] == [
        [*POSITIVE, "A_P"],
        [*NEGATIVE, "A_N"],
    ]
    assert max(map(len, text.splitlines())) <= 80
    assert "frequency 100.0     –" in text


def test_several_seeds_show_mean_and_standard_deviation_and_still_fit():
    seeds = {"a": [results(_1p=0.1), results(_1p=0.3)], "b": [results(_2p=1.0)]}
    assert compare(seeds).splitlines() == [
        "         1p    2p",
        "a 20.0±14.1     –",
        "b         – 100.0",
    ]
    every = Results("test", all_types())
    text = compare({"a row with quite a long name, which no screen has room for": [every] * 3})
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("±") == 16


def test_no_types_are_no_text():
    nothing = Results("test", {})
    assert str(nothing) == nothing.to_text() == ""
    assert repr(nothing) == "Results(test: 0 types, 0 queries)"


def test_its_representation_is_one_line_with_what_matters():
    many = Results("test", {name: made_up(0.25, queries=1000) for name in BETAE})
    assert repr(many) == "Results(test: A_P 25.0, A_N 25.0, 14 types, 14,000 queries)"
    assert repr(results(_1p=0.5, mine=0.25)) == "Results(test: mean MRR 37.5, 2 types, 14 queries)"


def test_results_need_no_torch():
    code = "import sys, lmpnn_kge.methods.results; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
