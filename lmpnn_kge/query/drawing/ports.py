"""The lines of a layout: where they leave their nodes, and how they run to their texts."""

from __future__ import annotations

from collections.abc import Sequence

from lmpnn_kge.query.drawing.parts import Edge, Node, Point, Route, sides_of
from lmpnn_kge.query.drawing.table import PORT, Cell, Table


class Ports:
    """The points at which lines leave nodes: in the order of the texts that they lead to."""

    def __init__(self, nodes: Sequence[Node], edges: Sequence[Edge], table: Table):
        self.nodes, self.edges, self.table = nodes, edges, table
        at: dict[tuple[int, bool], list[tuple[float, int, int]]] = {}
        for number, edge in enumerate(edges):
            for place, (end, is_right) in enumerate(sides_of(edge, nodes)):
                height = self._text_port(number, place)
                at.setdefault((end, is_right), []).append((height, number, place))
        self.heights: dict[tuple[int, int], float] = {}  # (edge, 0 for head or 1 for tail) -> y
        for (end, _), lines in at.items():
            for row, (_, number, place) in enumerate(sorted(lines)):
                offset = (row - (len(lines) - 1) / 2) * PORT
                self.heights[number, place] = table.cells[end].y + offset

    def route(self, number: int) -> Route:
        edge = self.edges[number]
        (head, head_right), (tail, tail_right) = sides_of(edge, self.nodes)
        start = self._half(number, 0, head, head_right)
        end = self._half(number, 1, tail, tail_right)
        return Route((start, end[::-1]))

    def _half(self, number: int, place: int, node: int, is_right: bool) -> tuple[Point, ...]:
        """From the border of a node to the border of the text, through the channel between."""
        cell, text = self.table.cells[node], self.table.cells[len(self.nodes) + number]
        y, side = self.heights[number, place], 1 if is_right else -1
        from_slot, to_slot = self._border(cell, side), self._border(text, -side)
        middle = (from_slot + to_slot) / 2
        goal = self._text_port(number, place)
        return (
            (self._edge_of(node, y, side), y),
            (from_slot, y),
            (middle, y),
            (middle, goal),
            (to_slot, goal),
            (text.x - side * text.width / 2, goal),
        )

    def _border(self, cell: Cell, side: int) -> float:
        """Where the slot of a cell ends."""
        lanes = self.table.columns[cell.slot].values()
        return cell.x + side * max(c.width for lane in lanes for c in lane) / 2

    def _edge_of(self, node: int, y: float, side: int) -> float:
        """Where a node ends at a height."""
        cell = self.table.cells[node]
        inset = 0.0
        if self.nodes[node].is_round:
            radius = min(cell.width, cell.height) / 2
            beyond = max(0.0, abs(y - cell.y) - (cell.height / 2 - radius))
            inset = radius - max(0.0, radius**2 - beyond**2) ** 0.5
        return cell.x + side * (cell.width / 2 - inset)

    def _text_port(self, number: int, place: int) -> float:
        """The height at which a line meets its text; if both ends are on one side, apart."""
        edge, text = self.edges[number], self.table.cells[len(self.nodes) + number]
        if self.nodes[edge.head].column != self.nodes[edge.tail].column:
            return text.y
        head, tail = (self.table.cells[end].y for end in (edge.head, edge.tail))
        is_upper = (place == 0) == (head <= tail)
        return text.y + (-1 if is_upper else 1) * min(PORT, text.height) / 2
