"""Query graphs as SVG: entities in boxes, variables in circles, negated edges dashed and red."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from lmpnn_kge.errors import printable
from lmpnn_kge.query.formula import FREE, Constant, Formula, Term
from lmpnn_kge.query.graph import Edge, QueryGraph, query_graphs
from lmpnn_kge.query.normal_form import unscoped

COLUMN, ROW, RADIUS, HEIGHT, MARGIN = 210, 90, 22, 32, 80

STYLE = """
  text { font: 14px sans-serif; text-anchor: middle; dominant-baseline: central; fill: #222 }
  text.edge { font-size: 12px; paint-order: stroke; stroke: white; stroke-width: 5px }
  text.title { text-anchor: start; font-size: 13px; fill: #555 }
  .constant { fill: #e8eef7; stroke: #4a6fa5; stroke-width: 1.5 }
  .existential { fill: white; stroke: #777; stroke-width: 1.5; stroke-dasharray: 3 3 }
  .free { fill: #fff3cf; stroke: #c98a00; stroke-width: 2.5 }
  path { fill: none; stroke: #444; stroke-width: 1.5; marker-end: url(#arrow) }
  path.negated { stroke: #c0392b; stroke-dasharray: 7 5; marker-end: url(#negated) }
"""

MARKER = (
    '<marker id="{id}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
    'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" '
    'style="fill:{colour};stroke:none;marker-end:none"/></marker>'
)


def draw(formula: Formula) -> str:
    """An SVG picture of a formula: one graph for each disjunct, with `?` on the right."""
    body, top, width = [], 20.0, 0.0
    graphs = query_graphs(formula)
    for number, graph in enumerate(graphs):
        if number:
            body.append(f'<text class="title" x="20" y="{top + 15:.0f}">or</text>')
        centres, (right, top) = _layout(graph, top + 30)
        body += _panel(graph, centres)
        width = max(width, right)
    title = f'<text class="title" x="20" y="22">{xml_text(str(formula))}</text>'
    width = max(width, 40 + 8 * len(str(formula)))
    markers = MARKER.format(id="arrow", colour="#444") + MARKER.format(
        id="negated", colour="#c0392b"
    )
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{top + 20:.0f}" '
        f'viewBox="0 0 {width:.0f} {top + 20:.0f}">',
        f"<style>{STYLE}</style><defs>{markers}</defs>",
        '<rect width="100%" height="100%" fill="white"/>',
        title,
        *body,
        "</svg>\n",
    ])  # fmt: skip


Point = tuple[float, float]


def xml_text(name: str) -> str:
    """A name as XML text, which cannot hold control characters."""
    return escape(printable(name))


def _layout(graph: QueryGraph, top: float) -> tuple[list[Point], Point]:
    """The centres of all nodes, and the lower right corner: a column for each distance from `?`."""
    distances = graph.distances
    columns: dict[int, list[int]] = {}
    for node, distance in enumerate(distances):
        columns.setdefault(distance, []).append(node)
    tallest = max(map(len, columns.values()))
    centres: list[Point] = [(0.0, 0.0)] * len(distances)
    for distance, nodes in columns.items():
        x = MARGIN + (max(columns) - distance) * COLUMN
        for row, node in enumerate(nodes):
            # In columns of one node each, an edge that skips a column would run through its node.
            lift = 0.35 * ROW * (distance % 2) if len(nodes) == 1 and len(graph.edges) > 2 else 0
            y = top + ROW / 2 + (tallest - len(nodes)) * ROW / 2 + row * ROW - lift
            centres[node] = (x, y)
    return centres, (2 * MARGIN + max(columns) * COLUMN, top + tallest * ROW)


def _panel(graph: QueryGraph, centres: list[Point]) -> list[str]:
    """The shapes of one graph: nodes last, so that they cover the ends of edges."""
    parallel: dict[frozenset[int], int] = {}
    shapes = []
    for edge in graph.edges:
        pair = frozenset((edge.head, edge.tail))
        shapes.append(_edge(edge, graph, centres, parallel.get(pair, 0)))
        parallel[pair] = parallel.get(pair, 0) + 1
    return shapes + [_node(term, point) for term, point in zip(graph.nodes, centres, strict=True)]


def _node(term: Term, centre: Point) -> str:
    x, y = centre
    if isinstance(term, Constant):
        half = _half_width(term)
        shape = f'<rect class="constant" x="{x - half:.1f}" y="{y - HEIGHT / 2:.1f}" '
        shape += f'width="{2 * half:.1f}" height="{HEIGHT}" rx="6"/>'
        return f'{shape}<text x="{x:.1f}" y="{y:.1f}">{xml_text(term.name)}</text>'
    style = "free" if term == FREE else "existential"
    name = xml_text(str(unscoped(term)))
    return (
        f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"/>'
        f'<text x="{x:.1f}" y="{y:.1f}">{name}</text>'
    )


def _half_width(term: Constant) -> float:
    return max(float(RADIUS), 4.2 * len(term.name) + 8)


def _reach(term: Term, dx: float, dy: float) -> float:
    """The distance from a node's centre to its border in the direction (dx, dy)."""
    if not isinstance(term, Constant):
        return RADIUS
    across = _half_width(term) / abs(dx) if dx else math.inf
    return min(across, HEIGHT / 2 / abs(dy) if dy else math.inf)


def _edge(edge: Edge, graph: QueryGraph, centres: list[Point], bend: int) -> str:
    """A curve from head to tail; parallel edges bend apart, and a loop goes round its node."""
    head, tail = centres[edge.head], centres[edge.tail]
    if edge.head == edge.tail:
        curve = loop(head, RADIUS, bend)
    else:
        offset = (bend + 1) // 2 * 34 * (-1 if bend % 2 else 1)
        dx, dy = direction(head, tail)
        leave = _reach(graph.nodes[edge.head], dx, dy)
        arrive = _reach(graph.nodes[edge.tail], dx, dy) + 4
        curve = arc(head, tail, leave, arrive, offset)
    sign = ' class="negated"' if edge.negated else ""
    if edge.relation is None:
        label = "≠" if edge.negated else "="
    else:
        label = xml_text(f"not {edge.relation}" if edge.negated else edge.relation)
    return (
        f'<path{sign} d="{curve.path}"/>'
        f'<text class="edge" x="{curve.middle[0]:.1f}" y="{curve.middle[1]:.1f}">{label}</text>'
    )


@dataclass(frozen=True)
class Curve:
    """A Bézier curve: its start, one or two control points and its end."""

    points: tuple[Point, ...]
    middle: Point  # where its text is

    @property
    def path(self) -> str:
        (x, y), *rest = self.points
        letter = "Q" if len(rest) == 2 else "C"
        return f"M{x:.1f} {y:.1f}{letter}" + " ".join(f"{x:.1f} {y:.1f}" for x, y in rest)


def direction(start: Point, end: Point) -> Point:
    """The unit vector from one point to another."""
    length = math.dist(start, end)
    return (end[0] - start[0]) / length, (end[1] - start[1]) / length


def arc(head: Point, tail: Point, leave: float, arrive: float, offset: float) -> Curve:
    """A curve between two nodes, which passes their middle at a distance.

    leave and arrive are the distances of its ends from the centres of the nodes.
    """
    dx, dy = direction(head, tail)
    x, y = (head[0] + tail[0]) / 2, (head[1] + tail[1]) / 2
    start = (head[0] + dx * leave, head[1] + dy * leave)
    control = (x - dy * 2 * offset, y + dx * 2 * offset)
    end = (tail[0] - dx * arrive, tail[1] - dy * arrive)
    return Curve((start, control, end), (x - dy * offset, y + dx * offset))


def loop(centre: Point, half_height: float, bend: int) -> Curve:
    """A curve from the top of a node back to it."""
    (x, y), size = centre, 40 + 15 * bend
    top, high = y - half_height, y - 2 * size
    points = ((x - 12, top), (x - size, high), (x + size, high), (x + 12, top))
    return Curve(points, (x, y - 1.5 * size))
