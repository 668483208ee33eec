"""Tables as text fit a terminal, and lose nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.methods.text_table import WIDTH, Table, Text, percent

words = st.text("ab ü-.,()=", max_size=120)


def test_labels_are_on_the_left_and_numbers_on_the_right():
    table = Table(
        ["", "1p", "hits"], [["base", "7.0", "1"], ["a b", Text("10.0", strong=True), "–"]]
    )
    assert table.to_text().splitlines() == [
        "        1p  hits",
        "base   7.0     1",
        "a b   10.0     –",
    ]


def test_texts_are_on_the_left():
    table = Table(["", "is"], [["Oslo", "known"], ["Rome", "new"]], numbers=False)
    assert table.to_text().splitlines() == ["     is", "Oslo known", "Rome new"]


def test_columns_that_do_not_fit_are_in_another_block():
    table = Table(["", "1p", "2p", "3p"], [["base", "1.0", "2.0", "3.0"]])
    assert table.to_text(width=16).splitlines() == [
        "        1p    2p",
        "base   1.0   2.0",
        "",
        "        3p",
        "base   3.0",
    ]


def test_a_long_label_takes_several_lines_with_the_numbers_in_the_last():
    table = Table(["", "1p"], [["rotate (my file.pt)", "1.0"], ["b", "2.0"]])
    assert table.to_text(width=22).splitlines() == [
        "              1p",
        "rotate (my",
        "file.pt)     1.0",
        "b            2.0",
    ]


@given(
    st.lists(words, min_size=1, max_size=20),
    st.lists(words, min_size=1, max_size=5),
    st.sampled_from(["7.0", "100.0", "20.0±14.1", "–"]),
)
@settings(max_examples=100, deadline=None)
def test_no_line_is_wider_than_a_terminal_and_every_number_is_complete(columns, labels, cell):
    table = Table(["", *columns], [[label, *[cell] * len(columns)] for label in labels])
    text = table.to_text()
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert text.split().count(cell) == len(columns) * len(labels)


def test_what_a_name_hides_is_written_out():
    assert "\\x1b[31m" in Table(["", "\x1b[31m"], [["a", "1.0"]]).to_text()


def test_a_mean_needs_all_its_values():
    assert percent([0.1, 0.2, 0.3]) == "20.0±10.0"
    assert percent([0.5]) == "50.0"
    assert percent([0.5, None]) == percent([]) == percent([None]) == "–"
