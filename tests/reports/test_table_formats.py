"""Tables for other programs: what a reader of each form reads is what the table has."""

import csv
import io
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lmpnn_kge.errors import printable
from lmpnn_kge.methods.text_table import NONE, Table, Text
from lmpnn_kge.reports.table_formats import format_table, format_tables, latex_text

HOSTILE = "50% of $x_1^2$ & {a} \\item #1 ~ <b> | [c] *d* `e` -- \"f\" 'g'"

cells = st.text("ab %$&#_{}~^\\<>|[]*`-\"',;−±–ε\n", max_size=20) | st.text(max_size=10)


def shown(text):
    return printable(text.strip())


#: What LaTeX prints for each command that we write; read by rules of its own, not by our table.
PRINTS = {
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<",
    "textgreater": ">", "textbar": "|", "textasciigrave": "`", "textendash": "–",
}  # fmt: skip


def latex_reads(text):
    """The characters that LaTeX prints for a text; AssertionError at anything but plain text."""
    read, rest = "", text
    while rest:
        if match := re.match(r"\\([a-z]+)\{\}", rest):
            read += PRINTS[match[1]]
        elif match := re.match(r"\\([&%$#_{}])", rest):
            read += match[1]
        elif match := re.match(r"\$(-|\\pm|\\varepsilon)\$", rest):
            read += {"-": "−", r"\pm": "±", r"\varepsilon": "ε"}[match[1]]
        elif match := re.match(r"\{([\[\]*])\}", rest):
            read += match[1]
        elif match := re.match(r"\{\}", rest):
            pass
        else:
            assert rest[0] not in "&%$#_{}~^\\<>|`[]*"
            assert not rest.startswith("--")
            match = re.match(r"(?s)(.)", rest)
            read += match[1]
        rest = rest[match.end() :]
    return read


@given(cells)
@example(HOSTILE)
@example("---")
@settings(max_examples=300, deadline=None)
def test_latex_prints_every_text_as_it_is(text):
    assert latex_reads(latex_text(text)) == shown(text)


@given(st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_every_form_has_every_cell(rows):
    table = Table(["", "one", "two"], rows, numbers=False)
    read = list(csv.reader(io.StringIO(format_table(table, "csv"), newline="")))
    assert read == [["", "one", "two"], *([printable(cell) for cell in row] for row in rows)]
    lines = format_table(table, "latex").splitlines()
    assert lines[:2] == [r"\begin{tabular}{lll}", r"\toprule"]
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    body = [line.removesuffix(r" \\") for line in lines[4:-2]]
    assert [list(map(latex_reads, line.split(" & "))) for line in body] == [
        [shown(cell) for cell in row] for row in rows
    ]


def test_markdown_is_a_table_that_a_parser_reads():
    table = Table(["", "1p"], [[HOSTILE, "7.0"], ["b", Text("9.0", strong=True)]], HOSTILE)
    tokens = MarkdownIt("commonmark").enable("table").parse(format_table(table, "markdown"))
    inline = [
        "".join(child.content for child in token.children)
        for token in tokens
        if token.type == "inline"
    ]
    assert inline == ["", "1p", HOSTILE, "7.0", "b", "9.0", HOSTILE]


def test_numbers_are_numbers_in_csv():
    table = Table(["", "1p", "change"], [["−x", NONE, "−1.5"], ["b", "20.0±1.0", "+2.0"]])
    assert format_table(table, "csv") == ",1p,change\n−x,,-1.5\nb,20.0±1.0,+2.0\n"


def test_latex_has_rules_captions_and_bold():
    table = Table(
        ["", "1p"], [["a", Text("1.0", strong=True)], ["[b]", "−2.0"]], "50% of all", rules=[0, 1]
    )
    assert format_table(table, "latex").splitlines() == [
        "% 50% of all",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r" & 1p \\",
        r"\midrule",
        r"a & \textbf{1.0} \\",
        r"\midrule",
        r"{[}b{]} & $-$2.0 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


@pytest.mark.parametrize("format", ["text", "markdown", "latex", "csv"])
def test_several_tables_are_set_apart(format):
    table = Table(["", "1p"], [["a", "1.0"]])
    assert format_tables([table, table], format).count("\n\n") == 1
