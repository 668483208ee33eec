"""Reasons as SVG: query graphs whose variables are filled in, with an edge for each condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from lmpnn_kge.errors import printable
from lmpnn_kge.query.draw import Curve, arc, direction, loop, xml_text
from lmpnn_kge.query.formula import FREE, Atom, Constant, Term, Variable
from lmpnn_kge.query.graph import QueryGraph, query_graph
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, scoped, unscoped
from lmpnn_kge.query.reason import Reason, Status

HEAD, ROW, HEIGHT, MARGIN, GAP = 36, 92, 36, 36, 60
SIGNS = "=≠"
LETTER, BOLD, SMALL = 7.6, 8.6, 6.4  # widths of a letter
LONGEST = 34  # letters of a name; the rest is in its tooltip


@dataclass(frozen=True)
class _Look:
    """How the edges of one status look."""

    colour: str
    dashes: str
    legend: str
    arrow: bool = True


LOOKS = {
    "known": _Look("#2b7a4b", "none", "known"),
    "predicted": _Look("#2563b8", "10 4", "predicted"),
    "missing": _Look("#8a8a8a", "2 4", "missing"),
    "absent": _Look("#c0392b", "5 4", "denied by the formula, not known to hold"),
    "denied": _Look("#c0392b", "none", "contradicts the formula"),
    "no-path": _Look("#8e44ad", "0.5 6", "denied path, not known"),
    "equal": _Look("#555555", "none", "equal", arrow=False),
    "different": _Look("#555555", "12 3 2 3", "different", arrow=False),
}

_LOOK_OF = {
    Status.KNOWN: "known",
    Status.PREDICTED: "predicted",
    Status.MISSING: "missing",
    Status.NOT_KNOWN: "absent",
    Status.DENIED: "denied",
    Status.NO_PATH: "no-path",
    Status.DENIED_PATH: "denied",
    Status.FALSE: "denied",
}

STYLE = """
  text { font: 14px sans-serif; text-anchor: middle; fill: #222 }
  text.title, text.legend { text-anchor: start; font-size: 13px; fill: #555 }
  text.title { font-size: 15px; font-weight: bold; fill: #222 }
  text.answer-text { font-weight: bold }
  text.note { font-size: 12px; fill: #8e44ad }
  text.edge { font-size: 12px }
  text.sign { font-size: 20px }
  text.tag { font-size: 12px; text-anchor: start; fill: #777 }
  .plate { fill: white }
  .constant { fill: #e8eef7; stroke: #4a6fa5; stroke-width: 1.5 }
  .variable { fill: white; stroke: #777; stroke-width: 1.5 }
  .answer { fill: #fff3cf; stroke: #c98a00; stroke-width: 2.5 }
  .nobody { fill: white; stroke: #8e44ad; stroke-width: 1.5; stroke-dasharray: 3 3 }
  path { fill: none; stroke-width: 2 }
  path.no-path { stroke-width: 2.5; stroke-linecap: round }
  .rule { stroke: #ddd; stroke-width: 1 }
"""


def draw_reasons(reasons: Sequence[Reason]) -> str:
    """An SVG picture of reasons, one below the other, with a legend of the edges in it."""
    shapes: list[str] = []
    looks: dict[str, None] = {}
    width, top = 0.0, 12.0
    for reason in reasons:
        panel = _Panel(reason)
        if shapes:
            shapes.append(f'<line class="rule" x1="0" x2="100%" y1="{top:.0f}" y2="{top:.0f}"/>')
        shapes += panel.shapes(top)
        looks |= dict.fromkeys(edge.look for edge in panel.edges)
        width, top = max(width, panel.width), top + panel.height
    legend, right = _legend(list(looks), top + 18)
    width, height = max(width, right), top + 40
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<style>{STYLE}{''.join(map(_edge_style, looks))}</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        *shapes,
        *legend,
        "</svg>\n",
    ])  # fmt: skip


@dataclass(frozen=True)
class _Node:
    """A term as it is drawn: a label in a shape, with the variable's name before it."""

    label: str
    shape: str
    variable: str = ""
    note: str = ""  # above the shape

    @property
    def half_width(self) -> float:
        letter = BOLD if self.shape == "answer" else LETTER
        text = letter * len(_shortened(self.label)) + self._tag_width
        return max(HEIGHT / 2, text / 2 + 14)

    @property
    def _tag_width(self) -> float:
        return SMALL * len(self.variable) + 6 if self.variable else 0

    def reach(self, dx: float, dy: float) -> float:
        """The distance from the centre to the border in the direction (dx, dy)."""
        if self.shape == "nobody":
            return HEIGHT / 2
        return min(
            self.half_width / abs(dx) if dx else float("inf"),
            HEIGHT / 2 / abs(dy) if dy else float("inf"),
        )

    def svg(self, x: float, y: float) -> str:
        half, corner = self.half_width, 6 if self.shape == "constant" else HEIGHT / 2
        svg = (
            f'<rect class="{self.shape}" x="{x - half:.1f}" y="{y - HEIGHT / 2:.1f}" '
            f'width="{2 * half:.1f}" height="{HEIGHT}" rx="{corner}"/>'
            f'<text class="{self.shape}-text" x="{x + self._tag_width / 2:.1f}" y="{y + 5:.1f}">'
            f"{_name(self.label)}</text>"
        )
        if self.variable:
            svg += f'<text class="tag" x="{x - half + 12:.1f}" y="{y + 5:.1f}">'
            svg += f"{xml_text(self.variable)}</text>"
        if self.note:
            svg += f'<text class="note" x="{x:.1f}" y="{y - HEIGHT / 2 - 6:.1f}">'
            svg += f"{xml_text(self.note)}</text>"
        return svg


@dataclass(frozen=True)
class _Edge:
    """A condition between two numbered nodes, with one or two lines of text."""

    head: int
    tail: int
    name: str
    words: str
    look: str

    @property
    def ends(self) -> frozenset[int]:
        return frozenset((self.head, self.tail))

    @property
    def text_width(self) -> float:
        return SMALL * max(len(_shortened(self.name)), len(self.words))

    def line(self, curve: Curve) -> str:
        return f'<path class="{self.look}" d="{curve.path}"/>{_arrow(self.look, curve)}'

    def text(self, curve: Curve) -> str:
        (x, y), half = curve.middle, self.text_width / 2 + 4
        lines = 2 if self.words else 1
        style = "sign" if self.name in SIGNS else "edge"
        svg = (
            f'<rect class="plate" x="{x - half:.1f}" y="{y - 8 * lines:.1f}" '
            f'width="{2 * half:.1f}" height="{16 * lines}" rx="4"/>'
            f'<text class="{style}" x="{x:.1f}" y="{y + 12 - 8 * lines:.1f}">'
            f"{_name(self.name)}</text>"
        )
        if self.words:
            svg += f'<text class="edge {self.look}-text" x="{x:.1f}" y="{y + 12:.1f}">'
            svg += f"{xml_text(self.words)}</text>"
        return svg


class _Panel:
    """The picture of one reason: a column of nodes for each distance from the answer."""

    def __init__(self, reason: Reason):
        graph = _with_own_constants(query_graph(reason.disjunct))
        self.title = reason.title
        self.nodes = list(_nodes(reason, graph.nodes))
        self.edges = list(_edges(reason, graph))
        self.distances = graph.distances
        self.columns = _columns(graph)
        loops = any(edge.head == edge.tail for edge in self.edges)
        self.head = HEAD + 40 * loops
        self.height = self.head + max(map(len, self.columns)) * ROW + 10
        self.centres = [(x, y) for x, y in zip(self._across(), self._down(), strict=True)]

    @property
    def width(self) -> float:
        right = max(
            x + node.half_width for node, (x, _) in zip(self.nodes, self.centres, strict=True)
        )
        return MARGIN + max(right, MARGIN + 9 * len(self.title))

    def shapes(self, top: float) -> list[str]:
        """All shapes: first lines, then texts and nodes, which no line may cross out."""
        title = f'<text class="title" x="{MARGIN}" y="26">{xml_text(self.title)}</text>'
        parallel = Counter(edge.ends for edge in self.edges)
        drawn: Counter[frozenset[int]] = Counter()
        lines, texts = [], []
        for edge in self.edges:
            curve = self._curve(edge, drawn[edge.ends], parallel[edge.ends])
            drawn[edge.ends] += 1
            lines.append(edge.line(curve))
            texts.append(edge.text(curve))
        nodes = [node.svg(*centre) for node, centre in zip(self.nodes, self.centres, strict=True)]
        return [f'<g transform="translate(0 {top:.0f})">', title, *lines, *texts, *nodes, "</g>"]

    def _across(self) -> list[float]:
        """The x of each node. Columns are as far apart as the nodes and the texts need."""
        half = [max(self.nodes[node].half_width for node in column) for column in self.columns]
        x = {len(half) - 1: MARGIN + half[-1]}
        for column in reversed(range(len(half) - 1)):
            texts = [
                edge.text_width
                for edge in self.edges
                if {self.distances[edge.head], self.distances[edge.tail]} == {column, column + 1}
            ]
            x[column] = x[column + 1] + half[column + 1] + half[column] + max([GAP, *texts]) + 80
        return [x[distance] for distance in self.distances]

    def _down(self) -> list[float]:
        """The y of each node."""
        tallest = max(map(len, self.columns))
        y = [0.0] * len(self.nodes)
        for distance, column in enumerate(self.columns):
            # In columns of one node each, an edge that skips a column would run through its node.
            lift = ROW / 4 * (-1) ** distance if tallest == 1 and len(self.edges) > 2 else 0
            for row, node in enumerate(column):
                y[node] = self.head + (row + (tallest - len(column)) / 2 + 0.5) * ROW + lift
        return y

    def _curve(self, edge: _Edge, number: int, parallel: int) -> Curve:
        """A curve from head to tail; parallel edges bend apart."""
        head, tail = self.centres[edge.head], self.centres[edge.tail]
        if edge.head == edge.tail:
            return loop(head, HEIGHT / 2, number)
        dx, dy = direction(head, tail)
        leave = self.nodes[edge.head].reach(dx, dy)
        arrive = self.nodes[edge.tail].reach(dx, dy) + 4
        side = 1 if edge.head < edge.tail else -1  # the same side for both directions
        return arc(head, tail, leave, arrive, side * (number - (parallel - 1) / 2) * 44)


def _nodes(reason: Reason, terms: Sequence[Term]) -> Iterator[_Node]:
    """A node for each term; the first variable of a denied group has the status above it."""
    groups = scoped(reason.disjunct).groups
    status = {
        group.bound[0]: check.words for group, check in zip(groups, reason.groups, strict=True)
    }
    for term in terms:
        if isinstance(term, Constant):
            yield _Node(reason.names[term].label, "constant")
        elif term in reason.names:
            shape = "answer" if term == FREE else "variable"
            yield _Node(reason.names[term].label, shape, variable=str(term))
        else:
            yield _Node(str(unscoped(term)), "nobody", note=status.get(term, ""))


def _with_own_constants(graph: QueryGraph) -> QueryGraph:
    """The graph with a node for each occurrence of a constant, so that fewer edges cross.

    It stays as it is if a constant is all that connects a part of it.
    """
    variables = [node for node, term in enumerate(graph.nodes) if isinstance(term, Variable)]
    nodes: list[Term] = [graph.nodes[node] for node in variables]
    edges = []
    for edge in graph.edges:
        ends = []
        for end in (edge.head, edge.tail):
            ends.append(variables.index(end) if end in variables else len(nodes))
            if end not in variables:
                nodes.append(graph.nodes[end])
        edges.append(replace(edge, head=ends[0], tail=ends[1]))
    split = QueryGraph(tuple(nodes), tuple(edges))
    return split if split.is_connected else graph


def _columns(graph: QueryGraph) -> list[list[int]]:
    """The nodes at each distance from the answer, each near the nodes that it is connected to."""
    distances = graph.distances
    height = {0: 0.0}
    columns = [[0]]
    for distance in range(1, max(distances) + 1):
        column = [node for node, other in enumerate(distances) if other == distance]
        means = {
            node: mean(height[other] for other in graph.neighbours(node) if other in height)
            for node in column
        }
        column.sort(key=means.__getitem__)
        columns.append(column)
        height |= {node: row - (len(column) - 1) / 2 for row, node in enumerate(column)}
    return columns


def _edges(reason: Reason, graph: QueryGraph) -> Iterator[_Edge]:
    """An edge for each atom of a reason, and for each atom of its denied groups."""
    ends = ((edge.head, edge.tail) for edge in graph.edges)
    for atom, (head, tail) in zip(reason.atoms, ends, strict=False):
        if atom.relation is None:
            look = "different" if atom.negated else "equal"
            words = "" if atom.status is Status.TRUE else atom.words
            yield _Edge(
                head, tail, "≠" if atom.negated else "=", words, look if not words else "denied"
            )
        else:
            name = f"not {atom.relation.label}" if atom.negated else atom.relation.label
            yield _Edge(head, tail, name, atom.words, _LOOK_OF[atom.status])
    for check in reason.groups:
        for (literal, prefix), (head, tail) in zip(
            _group_literals(check.filled), ends, strict=False
        ):
            name = literal.atom.relation if isinstance(literal.atom, Atom) else "="
            yield _Edge(head, tail, f"{prefix}{name}", "", _LOOK_OF[check.status])


def _group_literals(group: Conjunct, depth: int = 1) -> Iterator[tuple[SignedAtom, str]]:
    """The literals of a group and of the groups in it, with a word for their sign."""
    for literal in group.literals:
        yield literal, "unless " * (depth > 1) + "not " * literal.negated
    for inner in group.groups:
        yield from _group_literals(inner, depth + 1)


def _legend(looks: Sequence[str], y: float) -> tuple[list[str], float]:
    """A sample of each look with its meaning in one line, and where the line ends."""
    shapes, x = [], float(MARGIN)
    for name in looks:
        text = LOOKS[name].legend
        sample = arc((x, y), (x + 38, y), 0, 0, 0)
        shapes.append(
            f'<path class="{name}" d="{sample.path}"/>{_arrow(name, sample)}'
            f'<text class="legend" x="{x + 46:.0f}" y="{y + 4:.0f}">{text}</text>'
        )
        x += 46 + 7 * len(text) + 28
    return shapes, x


def _arrow(look: str, curve: Curve) -> str:
    """The head of an arrow at the end of a curve, if edges of this look have a direction."""
    if not LOOKS[look].arrow:
        return ""
    (x, y), (dx, dy) = curve.points[-1], direction(*curve.points[-2:])
    left = (x - 11 * dx - 5 * dy, y - 11 * dy + 5 * dx)
    right = (x - 11 * dx + 5 * dy, y - 11 * dy - 5 * dx)
    corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in ((x, y), left, right))
    return f'<polygon class="{look}-arrow" points="{corners}"/>'


def _edge_style(name: str) -> str:
    colour, dashes = LOOKS[name].colour, LOOKS[name].dashes
    return (
        f"  path.{name} {{ stroke: {colour}; stroke-dasharray: {dashes} }}\n"
        f"  text.{name}-text, .{name}-arrow {{ fill: {colour} }}\n"
    )


def _shortened(name: str) -> str:
    """A name that fits; of a path such as /film/film/genre the end tells more than the start."""
    name = printable(name)
    if len(name) <= LONGEST:
        return name
    return f"…{name[1 - LONGEST :]}" if "/" in name else f"{name[: LONGEST - 1]}…"


def _name(name: str) -> str:
    """A name as XML text, shortened, with the whole name as its tooltip."""
    whole = f"<title>{xml_text(name)}</title>" if _shortened(name) != printable(name) else ""
    return f"{whole}{xml_text(_shortened(name))}"
