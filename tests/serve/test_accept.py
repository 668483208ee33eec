"""Content negotiation by the header Accept."""

import pytest

from lmpnn_kge.serve.accept import preferred

OFFERED = ["application/json", "application/xml", "text/csv"]


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("TEXT/CSV; charset=utf-8", "text/csv"),
        ("application/json;q=0.1, application/xml", "application/xml"),
        ("application/json;q=0.1, application/xml;q=0.05", "application/json"),
        ("text/*", "text/csv"),
        ("text/*;q=0.3, application/*;q=0.2", "text/csv"),
        ("text/html, */*;q=0.1", "application/json"),
        ("*/*, application/json;q=0", "application/xml"),
        ("application/*, application/json;q=0.5", "application/xml"),
        ("text/csv ; Q=0.9 , application/xml;q=0.95", "application/xml"),
        ("text/html", None),
        ("*/*;q=0", None),
        ("application/json;q=nan", None),
        ("application/json;q=2, text/csv;q=0.1", "text/csv"),
        (",,;q=1,/,*,text", None),
    ],
)
def test_the_most_wanted_type_is_chosen(header, chosen):
    assert preferred(header, OFFERED) == chosen


def test_a_long_header_takes_no_longer_than_its_length():
    assert preferred("a/b;" + "q=;" * 20_000, OFFERED) is None
    assert preferred("a/b" + " " * 60_000 + "!, text/csv", OFFERED) == "text/csv"
