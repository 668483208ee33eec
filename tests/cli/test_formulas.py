"""The commands that take a formula: limits of time and size, and the names of pictures."""

import json
from importlib import import_module

import pytest

from ..toy_runs import cli, train_tiny

FRIENDS = 'friend_of("Ada Voss", ?)'
TOO_MANY = " | ".join(f'friend_of(?, "{i}")' for i in range(100))


@pytest.mark.parametrize("name", ["x.png", "x.pdf", "picture.SVG.jpg"])
def test_a_picture_is_not_written_under_the_name_of_another_format(here, name):
    error = cli("draw", FRIENDS, "-o", name, code=2).stderr
    assert "pictures are written as SVG" in error
    assert "name the file" in error
    assert not list(here.iterdir())


@pytest.mark.parametrize("name", ["x.svg", "x.SVG", "x"])
def test_a_picture_is_svg(here, name):
    cli("draw", FRIENDS, "-o", name)
    assert (here / name).read_text().startswith("<svg")


def test_reasons_are_not_drawn_to_another_format_either(here):
    error = cli("ask", "nowhere", FRIENDS, "-o", "why.png", code=2).stderr
    assert "name the file why.svg" in error


def test_a_time_limit_ends_an_answer_with_one_line(toy_dataset):
    arguments = ("answer", FRIENDS, "--dataset", toy_dataset, "--timeout")
    assert "no answer within 1e-09 s; simplify" in cli(*arguments, "1e-9", code=2).stderr
    assert cli(*arguments, "0").stdout == cli(*arguments[:-1]).stdout


def test_a_time_limit_ends_a_question_to_a_run_but_not_the_others(tmp_path, toy_queries):
    run = tmp_path / "run"
    train_tiny(toy_queries, run)
    arguments = ("ask", run, "--method", "lmpnn", "--timeout")
    assert "no answer within" in cli(*arguments, "1e-9", FRIENDS, code=2).stderr
    many = cli(*arguments, "1e-9", FRIENDS, FRIENDS, code=1).stderr
    assert many.count("no answer within") == 2
    assert cli(*arguments, "60", FRIENDS).stdout


def test_a_time_limit_ends_sampling_with_the_name_of_the_type(here, toy_dataset):
    arguments = ("--dataset", toy_dataset, "--types", "2p", "--count", "5", "--out", "queries")
    error = cli("sample", *arguments, "--timeout", "1e-9", code=2).stderr
    assert "train 2p: no answer within" in error
    assert not list(here.iterdir())


@pytest.mark.parametrize("seconds", ["-1", "soon"])
def test_a_time_that_is_none_is_refused(toy_dataset, seconds):
    arguments = ("answer", FRIENDS, "--dataset", toy_dataset, "--timeout", seconds)
    assert "--timeout" in cli(*arguments, code=2).stderr


def test_a_formula_that_is_too_large_is_refused_by_every_command(here, toy_dataset):
    for arguments in (
        ("answer", TOO_MANY, "--dataset", toy_dataset, "--sql"),
        ("draw", TOO_MANY, "-o", "x.svg"),
    ):
        assert "more than 64 disjuncts" in cli(*arguments, code=2).stderr
    assert not list(here.iterdir())


MENTORS = "mentor_of(?1, ?2) & friend_of(?2, ?1)"


def test_tuples_are_printed_as_text_csv_and_json(toy_dataset):
    arguments = ("answer", MENTORS, "--dataset", toy_dataset)
    text = cli(*arguments)
    assert text.stdout.splitlines()[0] == (
        "Ada Voss  (person/ada_voss), Jonas Petri  (person/jonas_petri)"
    )
    assert text.stderr == "8 answers\n"
    table = cli(*arguments, "--csv").stdout.splitlines()
    assert table[0] == "id1,label1,id2,label2"
    assert table[1] == "person/ada_voss,Ada Voss,person/jonas_petri,Jonas Petri"
    content = json.loads(cli(*arguments, "--json").stdout)
    first = [entity["id"] for entity in content["answers"][0]]
    assert first == ["person/ada_voss", "person/jonas_petri"]
    assert "complete" not in content
    assert cli(*arguments, "--ntriples").stdout.count("mentor_of>") >= 8
    assert '"?1" AS answer1, "?2" AS answer2' in cli(*arguments, "--sql").stdout


def test_a_limit_that_cuts_is_stated(toy_dataset, monkeypatch):
    arguments = ("answer", MENTORS, "--dataset", toy_dataset)
    few = cli(*arguments, "--limit", 2)
    assert "note: only the first 2 answers; --limit N gives another number" in few.stderr
    assert len(few.stdout.splitlines()) == 2
    assert json.loads(cli(*arguments, "--limit", 2, "--json").stdout)["complete"] is False
    assert "note" not in cli(*arguments, "--limit", 8).stderr
    monkeypatch.setattr(import_module("lmpnn_kge.cli.answer"), "TUPLES", 3)
    assert "only the first 3 answers" in cli(*arguments).stderr
    single = ("answer", FRIENDS, "--dataset", toy_dataset, "--csv")
    assert cli(*single).stdout.splitlines()[0] == "id,label"
    assert "only the first 1 answers" in cli(*single, "--limit", 1).stderr


def test_a_time_limit_ends_tuples_too(toy_dataset):
    arguments = ("answer", MENTORS, "--dataset", toy_dataset, "--timeout", "1e-9")
    assert "no answer within" in cli(*arguments, code=2).stderr


def test_a_type_with_tuples_is_drawn_and_translated(tmp_path):
    cli("draw", "2f-c", "-o", tmp_path / "query.svg")
    assert (tmp_path / "query.svg").read_text().count('class="free"') == 2
    assert "SELECT DISTINCT ?answer1 ?answer2" in cli("translate", MENTORS).stdout
