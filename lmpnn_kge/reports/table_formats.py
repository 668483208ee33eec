"""Tables for other programs: Markdown, LaTeX and CSV, each with its own rules for escaping."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from lmpnn_kge.errors import printable
from lmpnn_kge.methods.text_table import NONE, Cell, Table
from lmpnn_kge.reports.document import markdown_table, markdown_text

#: The forms in which a table is printed.
FORMATS = ("text", "markdown", "latex", "csv")

#: What stands for itself in LaTeX's text only under another name.
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "−": r"$-$",
    "±": r"$\pm$",
    "ε": r"$\varepsilon$",
    NONE: r"\textendash{}",
    "[": "{[}",  # at the beginning of a row it would belong to the end of the last
    "]": "{]}",
    "*": "{*}",  # likewise
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def format_tables(tables: Sequence[Table], format: str) -> str:
    """Tables with their captions as text; an empty line is between them."""
    return "\n".join(format_table(table, format) for table in tables)


def format_table(table: Table, format: str) -> str:
    """A table in one of FORMATS, with a line end; CSV has no caption."""
    if format == "latex":
        return _latex_table(table)
    if format == "csv":
        return _csv_table(table)
    is_markdown = format == "markdown"
    text = markdown_table(table) if is_markdown else table.to_text()
    caption = markdown_text(table.caption) if is_markdown else printable(table.caption)
    return f"{text}\n" + (f"\n{caption}\n" if caption else "")


def _latex_table(table: Table) -> str:
    """A tabular with the rules of the package booktabs, the caption in a comment before it."""
    columns = "l" + ("r" if table.numbers else "l") * (len(table.header) - 1)
    lines = [f"% {printable(table.caption)}"] if table.caption else []
    lines += [
        f"\\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_row(table.header),
        r"\midrule",
    ]
    for number, row in enumerate(table.rows):
        lines += [r"\midrule"] * (number > 0 and number in table.rules) + [_latex_row(row)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_row(row: Sequence[Cell]) -> str:
    return " & ".join(map(_latex_cell, row)) + r" \\"


def _latex_cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return latex_text(cell)
    text = f"\\texttt{{{latex_text(cell.text)}}}" if cell.code else latex_text(cell.text)
    return f"\\textbf{{{text}}}" if cell.strong and cell.text else text


def latex_text(text: str) -> str:
    """Text on one line in which nothing is a command."""
    # Two hyphens would make a dash.
    plain = re.sub("-(?=-)", "-\0", printable(text.strip()))
    return "".join(_LATEX.get(character, character) for character in plain).replace("\0", "{}")


def _csv_table(table: Table) -> str:
    """CSV in which a missing number is empty, and a minus is the one that programs read."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    for name, *cells in table.texts:
        shown = map(_csv_number, cells) if table.numbers else cells
        writer.writerow(map(printable, (name, *shown)))
    return lines.getvalue()


def _csv_number(text: str) -> str:
    return "" if text == NONE else re.sub(r"^−(?=\d)", "-", text)
