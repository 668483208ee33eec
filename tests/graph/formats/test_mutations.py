"""Broken files of every format are read or refused; `mutations` tries many more."""

from .mutations import run


def test_a_broken_file_is_read_or_refused_in_one_line():
    outcomes = run(120, seed=1)
    assert outcomes["several lines"] == 0
    assert outcomes["DatasetError"] > 0
    assert outcomes["folder read"] > 0
