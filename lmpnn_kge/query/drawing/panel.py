"""One graph of a picture: the texts of its nodes, edges and frames, and its shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lmpnn_kge.query.drawing import svg
from lmpnn_kge.query.drawing.diagram import Diagram
from lmpnn_kge.query.drawing.layout import lay_out
from lmpnn_kge.query.drawing.parts import Edge, Frame, Layout, Node, Rect

#: Heights of nodes and of a line of text, and the sizes of fonts.
HEIGHT, LINE = 36, 17
FONT, SMALL, SIGN = 14, 12, 20

SIGNS = "=≠"

STYLE = """
  text { font: 14px sans-serif; text-anchor: middle; fill: #222 }
  text.title { text-anchor: start; font-size: 13px; fill: #555 }
  text.edge, text.caption { font-size: 12px }
  text.sign { font-size: 20px }
  text.tag { font-size: 12px; text-anchor: start; fill: #777 }
  path { fill: none; stroke-width: 1.75 }
  .constant { fill: #e8eef7; stroke: #4a6fa5; stroke-width: 1.5 }
  .frame { fill: none; stroke-width: 1.5 }
"""


@dataclass(frozen=True)
class NodeText:
    """The label of a node, the name of its shape, and a tag before the label."""

    label: str
    style: str
    tag: str = ""
    bold: bool = False

    @property
    def tag_width(self) -> float:
        return svg.text_width(self.tag, SMALL) + 6 if self.tag else 0.0

    @property
    def width(self) -> float:
        label = svg.text_width(svg.shortened(self.label), FONT, bold=self.bold)
        return max(float(HEIGHT), label + self.tag_width + 24)

    def shapes(self, place: Rect) -> list[str]:
        radius = 6 if self.style == "constant" else min(place.width, place.height) / 2
        shapes = [
            svg.rectangle(self.style, place, radius),
            svg.text(
                f"{self.style}-text",
                place.x + self.tag_width / 2,
                place.y + 5,
                svg.name_text(self.label),
            ),
        ]
        if self.tag:
            shapes.append(svg.text("tag", place.left + 12, place.y + 5, svg.xml_text(self.tag)))
        return shapes


@dataclass(frozen=True)
class EdgeText:
    """The name of an edge, more words below it, and the name of how its line looks."""

    name: str
    look: str
    words: str = ""
    has_arrow: bool = True

    @property
    def size(self) -> tuple[float, float]:
        font = SIGN if self.name in SIGNS else SMALL
        name = svg.text_width(svg.shortened(self.name), font)
        words = svg.text_width(self.words, SMALL)
        return max(name, words) + 8, LINE * (2 if self.words else 1)

    def shapes(self, place: Rect) -> list[str]:
        style = "sign" if self.name in SIGNS else "edge"
        first = place.y + 4 - LINE / 2 * bool(self.words)
        shapes = [svg.text(f"{style} {self.look}-name", place.x, first, svg.name_text(self.name))]
        if self.words:
            content = svg.xml_text(self.words)
            shapes.append(svg.text(f"edge {self.look}-text", place.x, first + LINE, content))
        return shapes


@dataclass(frozen=True)
class FrameText:
    """The caption of a frame, and the name of how its border looks."""

    caption: str
    look: str

    @property
    def width(self) -> float:
        return svg.text_width(self.caption, SMALL) + 8


@dataclass(frozen=True)
class Panel:
    """A diagram with a text for each place, link and group."""

    diagram: Diagram
    nodes: Sequence[NodeText]
    edges: Sequence[EdgeText]
    frames: Sequence[FrameText]

    @cached_property
    def layout(self) -> Layout:
        diagram, columns = self.diagram, self.diagram.columns
        nodes = [
            Node(text.width, HEIGHT, column, place.frame, is_round=text.style != "constant")
            for text, column, place in zip(self.nodes, columns, diagram.places, strict=True)
        ]
        edges = [
            Edge(link.head, link.tail, *text.size, link.frame)
            for text, link in zip(self.edges, diagram.links, strict=True)
        ]
        frames = [
            Frame(group.parent, text.width, LINE, self._farthest(number, columns))
            for number, (text, group) in enumerate(zip(self.frames, diagram.groups, strict=True))
        ]
        return lay_out(nodes, edges, frames)

    def _farthest(self, frame: int, columns: Sequence[int]) -> int:
        """The column of a frame that is farthest from `?`."""
        places = zip(self.diagram.places, columns, strict=True)
        return max(column for place, column in places if place.frame == frame)

    def shapes(self) -> list[str]:
        """All shapes, from those in the background to those in the foreground."""
        layout = self.layout
        shapes = [
            svg.rectangle(f"frame {text.look}", place, 10)
            for text, place in zip(self.frames, layout.frames, strict=True)
        ]
        for edge, route in zip(self.edges, layout.routes, strict=True):
            shapes.append(svg.line(edge.look, route))
            if edge.has_arrow:
                shapes.append(svg.arrow(edge.look, *route.end))
        for node, place in zip(self.nodes, layout.nodes, strict=True):
            shapes += node.shapes(place)
        for edge, place in zip(self.edges, layout.texts, strict=True):
            shapes += edge.shapes(place)
        for frame, place in zip(self.frames, layout.captions, strict=True):
            style = f"caption {frame.look}-text"
            shapes.append(svg.text(style, place.x, place.y + 4, svg.xml_text(frame.caption)))
        return shapes
