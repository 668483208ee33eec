"""Pictures of formulas: everything is in them, and nothing covers anything else."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import assume, example, given, settings

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.draw import draw, panel_of
from lmpnn_kge.query.drawing.svg import text_width
from lmpnn_kge.query.graph import query_graphs
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse

from ..formulas import formulas

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"title": 13, "edge": 12, "caption": 12, "sign": 20}

NO_PATH = parse("!(borders(France, ?x) & borders(?x, ?)) & continent(?, Europe)")
NO_EDGE = parse("borders(France, ?x) & !borders(?x, ?) & continent(?, Europe)")
TANGLED = parse(
    "r(a, ?x) & s(?x, ?) & r(b, ?y) & s(?y, ?) & t(?x, ?y) & ?x != ?y & u(?, ?) & u(?y, ?y) & "
    "!(v(?x, ?z) & w(?z, ?) & w(?z, ?z) & !(v(?z, ?v) & w(?v, ?y) & t(?v, c))) & !(u(?q, ?))"
)


def pictured(formula):
    try:
        return [panel_of(disjunct) for disjunct in normalise(formula)]
    except QueryError:
        assume(False)


def overlap(one, other):
    """Whether two rectangles share more than their borders."""
    return (
        min(one.right, other.right) - max(one.left, other.left) > 0.01
        and min(one.bottom, other.bottom) - max(one.top, other.top) > 0.01
    )


def contains(outer, inner):
    return (
        outer.left <= inner.left
        and inner.right <= outer.right
        and outer.top <= inner.top
        and inner.bottom <= outer.bottom
    )


def points(half, steps=20):
    """Points on a half of a line: a straight piece, a Bézier curve and a straight piece."""
    start, a, b, c, d, end = half
    for step in range(steps + 1):
        t = step / steps
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
        yield tuple(
            sum(w * p[i] for w, p in zip(weights, (a, b, c, d), strict=True)) for i in (0, 1)
        )
        yield tuple(start[i] + t * (a[i] - start[i]) for i in (0, 1))
        yield tuple(d[i] + t * (end[i] - d[i]) for i in (0, 1))


def inside(point, rect):
    return (
        rect.left + 0.1 < point[0] < rect.right - 0.1
        and rect.top + 0.1 < point[1] < rect.bottom - 0.1
    )


@given(formula=formulas(leaves=12))
@settings(max_examples=150, deadline=None)
@example(NO_PATH)
@example(TANGLED)
def test_nothing_covers_anything_else(formula):
    for panel in pictured(formula):
        layout = panel.layout
        cells = [*layout.nodes, *layout.texts, *layout.captions]
        for one, other in itertools.combinations(cells, 2):
            assert not overlap(one, other)
        for number, (link, route) in enumerate(
            zip(panel.diagram.links, layout.routes, strict=True)
        ):
            own = {link.head, link.tail, len(layout.nodes) + number}
            others = [cell for n, cell in enumerate(cells) if n not in own]
            for point in itertools.chain.from_iterable(map(points, route.halves)):
                assert not any(inside(point, cell) for cell in others)
                assert 0 <= point[0] <= layout.width
                assert 0 <= point[1] <= layout.height


@given(formula=formulas(leaves=12))
@settings(max_examples=150, deadline=None)
@example(NO_PATH)
@example(TANGLED)
def test_a_frame_has_its_own_group_in_it_and_nothing_else(formula):
    for panel in pictured(formula):
        diagram, layout = panel.diagram, panel.layout
        owners = [*diagram.places, *diagram.links]
        cells = [*layout.nodes, *layout.texts]
        for number, frame in enumerate(layout.frames):
            members = {number}
            for other in range(number, len(diagram.groups)):
                members |= {other} if diagram.groups[other].parent in members else set()
            for owner, cell in zip(owners, cells, strict=True):
                if owner.frame in members:
                    assert contains(frame, cell)
                else:
                    assert not overlap(frame, cell)
            assert contains(frame, layout.captions[number])
            for other in set(range(len(layout.frames))) - members:
                is_outer = contains(layout.frames[other], frame)
                assert is_outer or not overlap(layout.frames[other], frame)


@given(formula=formulas(leaves=12))
@settings(max_examples=100, deadline=None)
@example(TANGLED)
def test_lines_begin_and_end_at_their_nodes_each_at_a_point_of_its_own(formula):
    for panel in pictured(formula):
        ends = []
        for link, route in zip(panel.diagram.links, panel.layout.routes, strict=True):
            first, last = route.halves[0][0], route.halves[1][-1]
            for number, point in ((link.head, first), (link.tail, last)):
                node = panel.layout.nodes[number]
                assert node.left - 0.1 <= point[0] <= node.right + 0.1
                assert node.top < point[1] < node.bottom
                if point is last:
                    assert (node.x - point[0]) * route.end[1] > 0  # it points into the node
                ends.append((round(point[0]), round(point[1])))
        assert len(set(ends)) == len(ends)


@given(formula=formulas(leaves=6))
@settings(max_examples=100, deadline=None)
@example(TANGLED)
def test_every_condition_has_a_line_and_every_text_is_in_the_picture(formula):
    try:
        graphs = query_graphs(formula)
    except QueryError:
        assume(False)
    picture = ElementTree.fromstring(draw(formula).encode())
    assert len(list(picture.iter(f"{SVG}path"))) == sum(len(g.edges) for g in graphs)
    width, height = (float(picture.get(name)) for name in ("width", "height"))
    for left, top, right, bottom in boxes(picture):
        assert 0 <= left < right <= width + 1
        assert 0 <= top < bottom <= height


@pytest.mark.parametrize("count", [1, 3, 40])
def test_titles_are_above_and_between_the_graphs(count):
    text = " | ".join(f'"relation {i}"(a, ?x) & s(?x, ?)' for i in range(count))
    picture = ElementTree.fromstring(draw(parse(text)))
    texts = boxes(picture)
    for one, other in itertools.combinations(texts, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart
    assert len([group for group in picture if group.tag == f"{SVG}g"]) == count


def boxes(picture):
    """Left, top, right and bottom of each text, by the width that texts are taken to have."""
    found = []
    for parent, dx, dy in [(picture, 0.0, 0.0), *groups(picture)]:
        for text in parent.findall(f"{SVG}text"):
            style = text.get("class").split()[0]
            size = SIZES.get(style, 14)
            words = "".join(part for part in (text.text, *(c.tail for c in text)) if part)
            width = text_width(words, size)
            x, y = float(text.get("x")) + dx, float(text.get("y")) + dy
            left = x if style == "title" else x - width / 2
            found.append((left, y - size, left + width, y + size / 4))
    return found


def groups(picture):
    for group in picture.findall(f"{SVG}g"):
        x, y = re.fullmatch(r"translate\((\S+) (\S+)\)", group.get("transform")).groups()
        yield group, float(x), float(y)


def test_no_path_and_no_edge_have_different_pictures():
    no_path, no_edge = (ElementTree.fromstring(draw(f)) for f in (NO_PATH, NO_EDGE))

    def styles(picture):
        return [shape.get("class") for shape in picture.iter() if shape.get("class")]

    assert "frame denied" in styles(no_path)
    assert "negated" not in styles(no_path)
    assert "frame denied" not in styles(no_edge)
    assert "negated" in styles(no_edge)


def test_a_group_in_a_group_has_a_frame_in_a_frame():
    (panel,) = pictured(TANGLED)
    assert [group.parent for group in panel.diagram.groups] == [None, 0, None]
    outer, inner, _ = panel.layout.frames
    assert contains(outer, inner)


def test_a_part_that_only_a_constant_connects_is_drawn_beside_it():
    (panel,) = pictured(parse("r(a, ?) & s(a, ?x) & t(?x, b)"))
    assert panel.diagram.columns == [0, 2, 1, 1, 3]


def test_a_very_long_formula_has_a_short_title():
    picture = draw(parse(" & ".join(f'r(?, "{"x" * 500}{i}")' for i in range(20))))
    assert picture.count('class="title"') <= 8
