"""What notebooks show: DataFrames (extra `frames`), and values as HTML."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from lmpnn_kge.errors import LmpnnError, printable


def data_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Columns as a DataFrame of pandas, which is imported only here."""
    try:
        import pandas
    except ImportError as error:
        raise LmpnnError(
            "a DataFrame needs pandas: run `pip install 'lmpnn-kge[frames]'`"
        ) from error
    return pandas.DataFrame(dict(columns))


def html_text(text: str) -> str:
    """Any text, in which nothing is markup."""
    return escape(printable(text))


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are plain text."""
    lines = [("th", header), *(("td", row) for row in rows)]
    return "".join([
        "<table>",
        *("<tr>" + "".join(f"<{tag}>{html_text(cell)}</{tag}>" for cell in cells) + "</tr>"
          for tag, cells in lines),
        "</table>",
    ])  # fmt: skip


def html_paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{html_text(text)}</p>" for text in texts)


def html_picture(svg: str, alt: str) -> str:
    """A picture whose styles do not reach the page around it."""
    data = b64encode(svg.encode()).decode()
    return f'<img alt="{html_text(alt)}" src="data:image/svg+xml;base64,{data}">'
