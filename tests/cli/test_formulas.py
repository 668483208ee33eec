"""The commands that take a formula: limits of time and size, and the names of pictures."""

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
