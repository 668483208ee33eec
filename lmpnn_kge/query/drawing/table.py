"""The cells of a layout in columns and lanes: how they are ordered, placed and framed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

from lmpnn_kge.query.drawing.parts import Edge, Frame, Node, Point, Rect, sides_of

#: Pixels between the columns, between cells of a column, between lanes, from a frame to its
#: content, between the ends of two lines at a node, and from the end of one to the corner.
CHANNEL, GAP, LANE, PAD, PORT, CORNER = 48, 18, 20, 12, 12, 8

#: Passes that order the cells of all columns.
ORDERING = 4


@dataclass(eq=False)
class Cell:
    """A node, a text or a caption in the table. Slots are columns, counted from the right."""

    width: float
    height: float
    slot: int
    frame: int | None
    near: list[Cell] = field(default_factory=list)  # in the same lane, in adjacent slots
    is_caption: bool = False
    x: float = 0.0
    y: float = 0.0


class Table:
    """Cells in slots and lanes. Nodes are in even slots, texts in odd ones, captions in either."""

    def __init__(self, nodes: Sequence[Node], edges: Sequence[Edge], frames: Sequence[Frame]):
        self.frames = frames
        # 1 for a frame without others in it, 2 if one of those is in it, and so on. A frame comes
        # before those in it.
        self.nesting = [1] * len(frames)
        for number in reversed(range(len(frames))):
            outer = frames[number].parent
            if outer is not None:
                self.nesting[outer] = max(self.nesting[outer], 1 + self.nesting[number])
        sides = [0, 0] * len(nodes)  # lines at the left and the right of each node
        for edge in edges:
            for end, is_right in sides_of(edge, nodes):
                sides[2 * end + is_right] += 1
        self.cells = [
            Cell(
                node.width,
                max(node.height, PORT * (max(sides[2 * n : 2 * n + 2]) - 1) + 2 * CORNER),
                2 * node.column,
                node.frame,
            )
            for n, node in enumerate(nodes)
        ]
        for edge in edges:
            column = min(nodes[edge.head].column, nodes[edge.tail].column)
            text = Cell(edge.width, edge.height, 2 * column + 1, edge.frame)
            for end in (edge.head, edge.tail):
                if nodes[end].frame == edge.frame:
                    text.near.append(self.cells[end])
                    self.cells[end].near.append(text)
            self.cells.append(text)
        self.cells += [
            Cell(frame.width, frame.height, 2 * frame.column, number, is_caption=True)
            for number, frame in enumerate(frames)
        ]
        self.columns: dict[int, dict[int | None, list[Cell]]] = {}  # slot -> lane -> cells
        for cell in self.cells:
            lane = self.columns.setdefault(cell.slot, {}).setdefault(cell.frame, [])
            lane.insert(0 if cell.is_caption else len(lane), cell)
        self.slots = sorted(self.columns)

    def order(self) -> None:
        """Order the cells of each slot as their neighbours are, so that few lines cross."""
        for slot in self.slots:
            self.place(slot)
        for number in range(ORDERING):
            step = -1 if number % 2 else 1  # towards the right in odd passes
            for slot in self.slots[::step]:
                self.place(slot, beside=slot - step)

    def place(self, slot: int, beside: int | None = None) -> None:
        """Move the cells of a slot near their neighbours.

        With beside, another slot, they are also ordered as their neighbours there.
        """
        for cells in self.columns[slot].values():
            wanted = {
                id(cell): mean(
                    [c.y for c in cell.near if beside is None or c.slot == beside] or [cell.y]
                )
                for cell in cells
            }
            if beside is not None:
                cells.sort(key=lambda cell: (not cell.is_caption, wanted[id(cell)]))
            body = [cell for cell in cells if not cell.is_caption]
            centres = _apart([wanted[id(c)] for c in body], [c.height for c in body])
            for cell, y in zip(body, centres, strict=True):
                cell.y = y
            if cells[0].is_caption and body:
                cells[0].y = body[0].y - (body[0].height + cells[0].height) / 2 - GAP

    def stack(self) -> tuple[dict[int, Point], float]:
        """Put the lanes below each other; the upper and the lower border of each frame."""
        lanes: dict[int | None, list[Cell]] = {}
        for cell in self.cells:
            lanes.setdefault(cell.frame, []).append(cell)
        inner: dict[int | None, list[int]] = {}
        for number, frame in enumerate(self.frames):
            inner.setdefault(frame.parent, []).append(number)
        bounds: dict[int, Point] = {}

        def stack_from(lane: int | None, top: float) -> float:
            first = min(cell.y - cell.height / 2 for cell in lanes[lane])
            for cell in lanes[lane]:
                cell.y += top - first
            bottom = max(cell.y + cell.height / 2 for cell in lanes[lane])
            for number in inner.get(lane, ()):
                upper = bottom + LANE
                bottom = stack_from(number, upper + PAD) + PAD
                bounds[number] = (upper, bottom)
            return bottom

        return bounds, stack_from(None, 0.0)

    def spread(self) -> float:
        """Put the slots side by side; the width of them all."""
        left = float(self._pad)
        for slot in reversed(self.slots):
            cells = [cell for lane in self.columns[slot].values() for cell in lane]
            width = max(cell.width for cell in cells)
            for cell in cells:
                cell.x = left + width / 2
            left += width + self.channel
        return left - self.channel + self._pad

    @property
    def channel(self) -> float:
        """The width of a channel, which has the borders of frames in it."""
        return CHANNEL + 2 * self._pad

    @property
    def _pad(self) -> int:
        return PAD * max(self.nesting, default=0)

    def framed(self, number: int, top: float, bottom: float) -> Rect:
        """The rectangle of a frame between two heights, around all its cells."""
        members = {number}
        for other in range(number + 1, len(self.frames)):
            if self.frames[other].parent in members:
                members.add(other)
        cells = [cell for cell in self.cells if cell.frame in members]
        pad = PAD * self.nesting[number]
        left = min(cell.x - cell.width / 2 for cell in cells) - pad
        right = max(cell.x + cell.width / 2 for cell in cells) + pad
        return Rect((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)


def _apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Centres near the wanted ones, by least squares, so that cells in this order do not overlap.

    The distances that cells need are subtracted first. Then centres must not fall, and neighbours
    that would fall are given their mean, until none does.
    """
    offsets = [0.0]
    for above, below in itertools.pairwise(heights):
        offsets.append(offsets[-1] + (above + below) / 2 + GAP)
    blocks: list[tuple[float, int]] = []  # mean, cells
    for goal, offset in zip(wanted, offsets, strict=True):
        blocks.append((goal - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (first, n), (second, m) = blocks[-2:]
            blocks[-2:] = [((first * n + second * m) / (n + m), n + m)]
    means = [value for value, count in blocks for _ in range(count)]
    return [value + offset for value, offset in zip(means, offsets, strict=True)]
