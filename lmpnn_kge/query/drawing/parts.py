"""The parts of a layout: what is to be placed, and where it was placed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Point = tuple[float, float]


@dataclass(frozen=True)
class Node:
    """A node to place: its size, its distance from `?` and the frame that it is in."""

    width: float
    height: float
    column: int
    frame: int | None = None
    is_round: bool = False


@dataclass(frozen=True)
class Edge:
    """An edge between nodes of one or of two adjacent columns, and the size of its text."""

    head: int  # the number of a node
    tail: int
    width: float
    height: float
    frame: int | None = None


@dataclass(frozen=True)
class Frame:
    """A group of nodes and edges: the frame that it is in, and its caption above a column."""

    parent: int | None
    width: float
    height: float
    column: int


@dataclass(frozen=True)
class Rect:
    """A rectangle by its centre and size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Route:
    """The line of an edge, in two halves with its text between them: from head, and to tail.

    A half is the points of a straight line, a cubic Bézier curve and a straight line: six points.
    """

    halves: tuple[tuple[Point, ...], tuple[Point, ...]]

    @property
    def end(self) -> tuple[Point, float]:
        """The last point, and 1 if the line arrives there from the left, −1 from the right."""
        first, *_, last = self.halves[1]
        return last, 1.0 if last[0] > first[0] else -1.0


@dataclass(frozen=True)
class Layout:
    """Where everything is, by the numbers of nodes, edges and frames."""

    nodes: tuple[Rect, ...]
    texts: tuple[Rect, ...]
    routes: tuple[Route, ...]
    frames: tuple[Rect, ...]
    captions: tuple[Rect, ...]
    width: float
    height: float


def sides_of(edge: Edge, nodes: Sequence[Node]) -> Iterator[tuple[int, bool]]:
    """Both ends of an edge, each with whether its line is on the right of the node.

    The text is on the left of the end that is nearer to `?`, or of both.
    """
    for end, other in ((edge.head, edge.tail), (edge.tail, edge.head)):
        yield end, nodes[end].column > nodes[other].column
