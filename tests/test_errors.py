"""The ends of messages: what would have been valid."""

from lmpnn_kge.errors import choices, nearest


def test_an_unknown_name_gets_the_nearest_and_all_that_are_valid():
    assert choices("tset", ["train", "test"]) == "did you mean 'test'? choose from: test, train"
    assert choices("x", ["train", "test"]) == "choose from: test, train"
    assert nearest("TRAIN", ["train", "test"]) == "; did you mean 'train'?"


def test_with_nothing_to_choose_from_the_caller_says_what_is_missing():
    assert choices("x", []) == "there are none"
    assert choices("x", {}, if_none="no backbone is installed") == "no backbone is installed"
