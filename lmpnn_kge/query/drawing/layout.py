"""A layout for query graphs in which no line, node or text covers another.

Nodes stand in columns by their distance from `?`, which is on the right. Every edge has its text in
a column of its own between those of its ends, so that nodes and texts are cells of one table. A
line leaves its cell horizontally and bends only in the empty channels between two columns. Thus no
line meets a cell, whatever the graph is; only lines cross.

The cells of a denied group are below all others, in a lane of their own, so that a rectangle frames
them and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmpnn_kge.query.drawing.parts import Edge, Frame, Layout, Node, Rect
from lmpnn_kge.query.drawing.ports import Ports
from lmpnn_kge.query.drawing.table import Table

#: Passes that place the cells of all columns.
PLACING = 24


def lay_out(nodes: Sequence[Node], edges: Sequence[Edge], frames: Sequence[Frame] = ()) -> Layout:
    """The layout of a graph whose edges connect nodes of the same or of adjacent columns."""
    table = Table(nodes, edges, frames)
    table.order()
    for _ in range(PLACING):
        for slot in table.slots:
            table.place(slot)
    bounds, height = table.stack()
    width = table.spread()
    rects = [Rect(cell.x, cell.y, cell.width, cell.height) for cell in table.cells]
    ports = Ports(nodes, edges, table)
    count = len(nodes) + len(edges)
    return Layout(
        tuple(rects[: len(nodes)]),
        tuple(rects[len(nodes) : count]),
        tuple(ports.route(number) for number in range(len(edges))),
        tuple(table.framed(number, *bounds[number]) for number in range(len(frames))),
        tuple(rects[count:]),
        width,
        height,
    )
