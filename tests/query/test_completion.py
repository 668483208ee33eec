"""What is typed at a place in an unfinished question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge.query.completion import Cursor, cursor_at


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Cursor("relation", 0, 0)),
        ("bor", Cursor("relation", 0, 3, "bor")),
        ('"is ne', Cursor("relation", 0, 6, "is ne")),
        ("borders(", Cursor("entity", 8, 8, "", "borders", "head")),
        ("borders(Ger", Cursor("entity", 8, 11, "Ger", "borders", "head")),
        ('borders("South S', Cursor("entity", 8, 16, "South S", "borders", "head")),
        ('"is near"(a, Pe', Cursor("entity", 13, 15, "Pe", "is near", "tail")),
        ("borders(Germany, ?) & !cur", Cursor("relation", 23, 26, "cur")),
        ("a(b, ?) | (c", Cursor("relation", 11, 12, "c")),
        ("!(borders(?x, Ger", Cursor("entity", 14, 17, "Ger", "borders", "tail")),
        ("? != Pe", Cursor("entity", 5, 7, "Pe")),
    ],
)
def test_the_end_of_a_text_names_a_relation_or_an_entity(text, expected):
    assert cursor_at(text, len(text)) == expected


@pytest.mark.parametrize(
    "text", ["borders(?x", "borders(a, b)", "a(b, c) ", "a(b, c, ", "SELECT ?x { ?x <bor"]
)
def test_nothing_can_be_completed_where_no_name_belongs(text):
    assert cursor_at(text, len(text)).role == "none"


def test_inside_a_name_the_whole_name_is_replaced():
    assert cursor_at("borders(Germany, ?)", 10) == Cursor("entity", 8, 15, "Ge", "borders", "head")


@given(st.text(alphabet='ab?("),&|!= \\', max_size=30), st.integers(-3, 40))
def test_any_text_has_a_place(text, place):
    cursor = cursor_at(text, place)
    assert 0 <= cursor.start <= cursor.end <= len(text)
