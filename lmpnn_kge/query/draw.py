"""Query graphs as SVG: entities in boxes, variables in circles, negated edges dashed and red.

A group that is denied as a whole has a red frame. Inside it, edges have their own signs.
"""

from __future__ import annotations

from lmpnn_kge.query.drawing import svg
from lmpnn_kge.query.drawing.diagram import Diagram, Link
from lmpnn_kge.query.drawing.panel import STYLE, EdgeText, FrameText, NodeText, Panel
from lmpnn_kge.query.formula import Atom, Constant, Formula, Term
from lmpnn_kge.query.normal_form import Conjunct, normalise, unscoped

MARGIN, TITLE = 24, 13

#: Colour and dashes of positive edges, of negated ones and of frames.
LOOKS = {
    "plain": ("#444", "none"),
    "negated": ("#c0392b", "7 5"),
    "denied": ("#c0392b", "7 5"),
}

OWN_STYLE = """
  .existential { fill: white; stroke: #777; stroke-width: 1.5; stroke-dasharray: 3 3 }
  .free { fill: #fff3cf; stroke: #c98a00; stroke-width: 2.5 }
"""


def draw(formula: Formula) -> str:
    """An SVG picture of a formula: one graph for each disjunct, with what is asked on the right."""
    panels = [panel_of(disjunct) for disjunct in normalise(formula)]
    width = max(panel.layout.width for panel in panels)
    lines = svg.wrapped(str(formula), TITLE, max(svg.TITLE_WIDTH, width))
    width = max([width, *(svg.text_width(line, TITLE) for line in lines)])
    shapes, top = [], float(MARGIN)
    for line in lines:
        shapes.append(svg.text("title", MARGIN, top, svg.xml_text(line)))
        top += 18
    for number, panel in enumerate(panels):
        if number:
            shapes.append(svg.text("title", MARGIN, top + 14, "or"))
            top += 24
        shapes += svg.moved(panel.shapes(), MARGIN, top)
        top += panel.layout.height + MARGIN
    style = f"{STYLE}{OWN_STYLE}{svg.looks(LOOKS)}"
    return svg.document(style, shapes, width + 2 * MARGIN, top)


def panel_of(conjunct: Conjunct) -> Panel:
    """The picture of a conjunct."""
    diagram = Diagram.of(conjunct)
    return Panel(
        diagram,
        [_node(place.term) for place in diagram.places],
        [_edge(link) for link in diagram.links],
        [FrameText("not", "denied") for _ in diagram.groups],
    )


def _node(term: Term) -> NodeText:
    if isinstance(term, Constant):
        return NodeText(term.name, "constant")
    return NodeText(str(unscoped(term)), "free" if term.is_free else "existential")


def _edge(link: Link) -> EdgeText:
    atom, negated = link.literal.atom, link.literal.negated
    look = "negated" if negated else "plain"
    if not isinstance(atom, Atom):
        return EdgeText("≠" if negated else "=", look, has_arrow=False)
    return EdgeText(f"not {atom.relation}" if negated else atom.relation, look)
