"""Documents as data: headings, paragraphs, tables and figures, as Markdown and as HTML.

All text is plain text: both forms escape it, so that both show the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from lmpnn_kge.errors import printable
from lmpnn_kge.methods.text_table import Cell, Table


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Figure:
    """A picture as SVG, which is trusted: it alone is not escaped."""

    name: str  # of its file, without the suffix: letters, digits and hyphens
    svg: str
    caption: str

    def __post_init__(self) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9-]*", self.name)


#: A string is a paragraph.
Block = str | Heading | Table | Figure


@dataclass(frozen=True)
class Document:
    title: str
    blocks: Sequence[Block]

    @property
    def figures(self) -> list[Figure]:
        return [block for block in self.blocks if isinstance(block, Figure)]


def to_markdown(document: Document, file_of: Callable[[Figure], str]) -> str:
    """GitHub's Markdown; file_of names the file of a figure, in the same folder."""
    parts = [f"# {markdown_text(document.title)}"]
    for block in document.blocks:
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {markdown_text(block.text)}")
        elif isinstance(block, Table):
            parts += [markdown_table(block)] + [markdown_text(block.caption)] * bool(block.caption)
        elif isinstance(block, Figure):
            parts.append(f"![{markdown_text(block.caption)}]({quote(file_of(block))})")
        else:
            parts.append(markdown_text(block))
    return "\n\n".join(parts) + "\n"


def markdown_text(text: str) -> str:
    """Text on one line in which nothing is markup."""
    text = re.sub(r"([\\`*\[\]<>|~&$])", r"\\\1", printable(text.strip()))
    text = re.sub(r"(?<!\w)_+|_+(?!\w)", lambda run: r"\_" * len(run[0]), text)
    # Markdown makes links of addresses; and headings, lists and rules at the beginning of a line.
    text = re.sub(r":(?=//)|(?<=www)\.|@(?=[\w-]+\.)", r"\\\g<0>", text, flags=re.IGNORECASE)
    text = re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", text)
    return re.sub(r"^(#|=|:|[+-](?=\s|$|--))|(?<=\s)#+$", r"\\\g<0>", text)


def _markdown_cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return markdown_text(cell)
    text = printable(cell.text.strip())
    if cell.code and text and not set(text) & set("`|\\"):
        return f"`{text}`"
    return f"**{markdown_text(text)}**" if cell.strong and text else markdown_text(text)


def markdown_table(table: Table) -> str:
    """A table of GitHub's Markdown, without its caption."""
    rows = [[_markdown_cell(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = [min(40, max(3, *map(len, column))) for column in zip(*rows, strict=True)]
    right = [False, *([table.numbers] * (len(widths) - 1))]
    rules = [
        "-" * (width - 1) + (":" if on_right else "-")
        for width, on_right in zip(widths, right, strict=True)
    ]
    lines = [
        [
            text.rjust(width) if on_right else text.ljust(width)
            for text, width, on_right in zip(row, widths, right, strict=True)
        ]
        for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rules, *lines[1:]))


STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0;
  --paper: #ffffff; --shade: #f6f8fa }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --paper: #0d1117; --shade: #161b22 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 1rem }
h2 { font-size: 1.3rem; margin: 2.75rem 0 .75rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line) }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem }
h1, h2, h3, p { overflow-wrap: anywhere }
p { max-width: 46rem; margin: .75rem 0 }
.table { overflow-x: auto; margin: 1rem 0 .25rem }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums;
  border-top: 2px solid var(--ink); border-bottom: 2px solid var(--ink) }
th, td { padding: .3rem .55rem; text-align: left; vertical-align: top }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; white-space: nowrap }
tbody th { font-weight: 500; min-width: 7rem; max-width: 22rem; overflow-wrap: anywhere }
tbody tr:hover { background: var(--shade) }
tr.rule th, tr.rule td { border-top: 1px solid var(--line) }
.numbers th + th, .numbers td { text-align: right; white-space: nowrap }
.texts td { min-width: 8rem; max-width: 30rem; overflow-wrap: anywhere }
code { font: .85em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
p.caption, figcaption { font-size: .875rem; color: var(--soft) }
figure { margin: 1.5rem 0 }
figure svg { display: block; max-width: 100%; height: auto }
""".strip()

#: The page neither loads nor runs anything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def to_html(document: Document) -> str:
    """One page that needs no other file."""
    title = _html(document.title)
    return "\n".join([
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="generator" content="lmpnn-kge">',
        f"<title>{title}</title>",
        f"<style>\n{STYLE}\n</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{title}</h1>",
        *map(_html_block, document.blocks),
        "</main>",
        "</body>",
        "</html>\n",
    ])  # fmt: skip


def _html(text: str) -> str:
    return escape(printable(text.strip()))


def _html_block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_html(block.text)}</h{block.level}>"
    if isinstance(block, Table):
        return _html_table(block)
    if isinstance(block, Figure):
        return (
            f'<figure id="{block.name}">\n{_inline(block)}\n'
            f"<figcaption>{_html(block.caption)}</figcaption>\n</figure>"
        )
    return f"<p>{_html(block)}</p>"


def _html_cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return _html(cell)
    text = f"<code>{_html(cell.text)}</code>" if cell.code else _html(cell.text)
    return f"<strong>{text}</strong>" if cell.strong else text


def _html_table(table: Table) -> str:
    style = "numbers" if table.numbers else "texts"
    head = "".join(f'<th scope="col">{_html_cell(cell)}</th>' for cell in table.header)
    lines = [f'<div class="table" tabindex="0"><table class="{style}">']
    lines += [f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for number, (name, *cells) in enumerate(table.rows):
        rule = ' class="rule"' if number in table.rules else ""
        data = "".join(f"<td>{_html_cell(cell)}</td>" for cell in cells)
        lines.append(f'<tr{rule}><th scope="row">{_html_cell(name)}</th>{data}</tr>')
    lines.append("</tbody></table></div>")
    if table.caption:
        lines.append(f'<p class="caption">{_html(table.caption)}</p>')
    return "\n".join(lines)


def _inline(figure: Figure) -> str:
    """A picture as a part of the page."""
    # Ids and styles hold for the complete page, so they are limited to this figure.
    svg = figure.svg[figure.svg.index("<svg") :].strip()
    svg = re.sub(r'((?:\bid=|href=)")(#?)', rf"\1\2{figure.name}-", svg)
    svg = re.sub(r"url\(#", f"url(#{figure.name}-", svg)
    svg = re.sub(
        r"(<style[^>]*>)(.*?)(</style>)", rf"\1#{figure.name} {{\2}}\3", svg, flags=re.DOTALL
    )
    label = _html(figure.caption)
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
