"""SVG: the shapes and texts that pictures of queries are made of, and how wide a text is."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from lmpnn_kge.errors import printable
from lmpnn_kge.query.drawing.parts import Point, Rect, Route

#: Letters of a name; the rest is in its tooltip. Lines of a title, and a width that it may fill.
LONGEST, TITLE_LINES, TITLE_WIDTH = 34, 8, 480

_NARROW = frozenset("fijlrtI.,:;'|!()[]/\\- \"")
_WIDE = frozenset("mwMW@%&…—Ææ")
_BROAD = frozenset("=+<>~^#≠")

ARROW = 11  # pixels


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """At most so wide is a text in pixels in the fonts that browsers use as sans-serif."""
    return sum(map(_width, text)) * size * (1.14 if bold else 1.0)


def _width(character: str) -> float:
    """The width of a character in a wide font, in units of its size."""
    if unicodedata.combining(character):
        return 0.0
    if character in _NARROW:
        return 0.47
    if character in _WIDE:
        return 1.03
    if character in _BROAD:
        return 0.85
    if character < "\u007f" or (character < "\u0100" and character.isalpha()):
        return 0.82 if character.isupper() else 0.68
    return 1.2 if character < "\U0001f000" else 1.5


def xml_text(name: str) -> str:
    """A name as XML text, which cannot hold control characters."""
    return escape(printable(name))


def shortened(name: str) -> str:
    """A name that fits; of a path such as /film/film/genre the end tells more than the start."""
    name = printable(name)
    if len(name) <= LONGEST:
        return name
    return f"…{name[1 - LONGEST :]}" if "/" in name else f"{name[: LONGEST - 1]}…"


def name_text(name: str) -> str:
    """A name as XML text, shortened, with the whole name as its tooltip."""
    whole = f"<title>{xml_text(name)}</title>" if shortened(name) != printable(name) else ""
    return f"{whole}{xml_text(shortened(name))}"


def text(style: str, x: float, y: float, content: str) -> str:
    """A text; the content is XML."""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{content}</text>'


def rectangle(style: str, place: Rect, radius: float) -> str:
    return (
        f'<rect class="{style}" x="{place.left:.1f}" y="{place.top:.1f}" '
        f'width="{place.width:.1f}" height="{place.height:.1f}" rx="{radius:g}"/>'
    )


def line(style: str, route: Route) -> str:
    """The line of an edge, which its text interrupts."""
    return f'<path class="{style}" d="{path_data(route)}"/>'


def path_data(route: Route) -> str:
    """The line of an edge in the words of a path's `d`."""
    return "".join(
        "M{} L{} C{} {} {} L{}".format(*(f"{x:.1f} {y:.1f}" for x, y in half))
        for half in route.halves
    )


def arrow(style: str, point: Point, direction: float) -> str:
    """The head of an arrow to the right (1) or to the left (−1)."""
    x, y = point
    back = x - direction * ARROW
    corners = ((x, y), (back, y - 5), (back, y + 5))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    return f'<polygon class="{style}-arrow" points="{points}"/>'


def moved(shapes: Iterable[str], x: float, y: float) -> list[str]:
    """Shapes as a group at another place."""
    return [f'<g transform="translate({x:.0f} {y:.0f})">', *shapes, "</g>"]


def wrapped(title: str, size: float, width: float, *, bold: bool = False) -> list[str]:
    """A title in lines that are not wider than given; of a very long one, only the beginning."""
    lines: list[str] = [""]
    for word in _words(printable(title)):
        if lines[-1] and text_width(lines[-1] + word.rstrip(), size, bold=bold) > width:
            lines[-1] = lines[-1].rstrip()
            if len(lines) == TITLE_LINES:
                lines[-1] += " …"
                break
            lines.append("")
        lines[-1] += word
    return lines


def _words(title: str) -> Iterable[str]:
    """The words of a title with the spaces after them; long ones in pieces."""
    for word in title.split(" "):
        for start in range(0, max(1, len(word)), LONGEST):
            piece = word[start : start + LONGEST]
            yield piece + " " * (start + LONGEST >= len(word))


def looks(styles: Mapping[str, tuple[str, str]]) -> str:
    """The CSS of lines by the names of their looks: a colour and dashes for each."""
    return "".join(
        f"  .{name} {{ stroke: {colour}; stroke-dasharray: {dashes} }}\n"
        f"  .{name}-text, .{name}-arrow {{ fill: {colour} }}\n"
        for name, (colour, dashes) in styles.items()
    )


def document(style: str, shapes: Sequence[str], width: float, height: float) -> str:
    """The whole picture, on white."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<style>{style}</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        *shapes,
        "</svg>\n",
    ])  # fmt: skip
