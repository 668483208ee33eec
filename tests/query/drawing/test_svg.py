"""The width of texts, against the widest of the fonts that browsers use."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.query.drawing.svg import LONGEST, TITLE_LINES, shortened, text_width, wrapped

#: Western and Central European letters, Greek, Russian, figures and signs.
letters = st.characters(max_codepoint=0x17F, categories=("L", "N", "P", "S", "Zs")) | st.characters(
    min_codepoint=0x370, max_codepoint=0x44F, categories=("L",)
)


@pytest.mark.parametrize("weight", ["normal", "bold"])
@given(text=st.text(letters, min_size=1, max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_text_is_wider_than_it_is_taken_to_be(weight, text):
    font_manager = pytest.importorskip("matplotlib.font_manager")
    from matplotlib.ft2font import FT2Font

    properties = font_manager.FontProperties(family="DejaVu Sans", weight=weight)
    font = FT2Font(font_manager.findfont(properties))
    font.set_size(100, 72)
    known = [ord(character) for character in text if font.get_char_index(ord(character))]
    widest = sum(font.load_char(code).linearHoriAdvance / 65536 for code in known)
    assert widest <= text_width(text, 100, bold=weight == "bold")


@given(text=st.text(max_size=300), width=st.integers(640, 1200))
@settings(max_examples=200, deadline=None)
def test_the_lines_of_a_title_are_not_wider_than_they_may_be(text, width):
    lines = wrapped(text, 13, width)
    assert 1 <= len(lines) <= TITLE_LINES
    assert all(text_width(line, 13) <= width + text_width(" …", 13) for line in lines)


def test_a_title_is_cut_between_words():
    assert wrapped("borders(France, ?x) & borders(?x, ?)", 13, 200) == [
        "borders(France, ?x) &",
        "borders(?x, ?) ",
    ]


def test_a_long_name_keeps_the_end_that_tells_more():
    assert shortened("/a/" * 30).startswith("…")
    assert shortened("a" * 50).endswith("…")
    assert len(shortened("a" * 50)) == LONGEST
    assert shortened("short") == "short"
