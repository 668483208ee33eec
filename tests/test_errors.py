"""The ends of messages: what would have been valid."""

from lmpnn_kge.errors import QueryError, choices, nearest, short


def test_an_unknown_name_gets_the_nearest_and_all_that_are_valid():
    assert choices("tset", ["train", "test"]) == "did you mean 'test'? choose from: test, train"
    assert choices("x", ["train", "test"]) == "choose from: test, train"
    assert nearest("TRAIN", ["train", "test"]) == "; did you mean 'train'?"


def test_with_nothing_to_choose_from_the_caller_says_what_is_missing():
    assert choices("x", []) == "there are none"
    assert choices("x", {}, if_none="no backbone is installed") == "no backbone is installed"


def test_an_excerpt_of_a_long_formula_shows_the_place_and_little_else():
    text = "r(a, ?) & " * 100_000
    error = QueryError("wrong", text, 500_000)
    shown, pointer = error.excerpt.split("\n")
    assert len(shown) < 1100
    assert shown[len(pointer) - 1] == text[500_000]
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_name_of_a_million_characters_is_not_compared_with_others():
    assert nearest("x" * 1_000_000, ["x" * 999_999]) == ""


def test_numbers_that_python_does_not_print_are_described():
    assert short(2**100_000) == "a number of 100,001 bits"
    assert short([2**100_000]) == "[a number of 100,001 bits]"
