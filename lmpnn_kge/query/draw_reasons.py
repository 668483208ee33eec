"""Reasons as SVG: query graphs whose variables are filled in, with an edge for each condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lmpnn_kge.query.drawing import svg
from lmpnn_kge.query.drawing.diagram import Diagram, Link
from lmpnn_kge.query.drawing.panel import STYLE, EdgeText, FrameText, NodeText, Panel
from lmpnn_kge.query.drawing.parts import Route
from lmpnn_kge.query.formula import Atom, Constant, Term
from lmpnn_kge.query.normal_form import Conjunct, unscoped
from lmpnn_kge.query.reason import CheckedAtom, CheckedGroup, Reason, Status

MARGIN, TITLE, LEGEND, SAMPLE = 24, 15, 13, 38


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
    "no-path": _Look("#8e44ad", "1 5", "denied path, not known"),
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
    Status.OPEN_PATH: "denied",
    Status.FALSE: "denied",
}

OWN_STYLE = """
  text.legend { text-anchor: start; font-size: 13px; fill: #555 }
  text.heading { text-anchor: start; font-size: 15px; font-weight: bold }
  text.answer-text { font-weight: bold }
  path { stroke-width: 2 }
  .variable { fill: white; stroke: #777; stroke-width: 1.5 }
  .answer { fill: #fff3cf; stroke: #c98a00; stroke-width: 2.5 }
  .nobody { fill: white; stroke: #8e44ad; stroke-width: 1.5; stroke-dasharray: 3 3 }
  .rule { stroke: #ddd; stroke-width: 1 }
"""


def draw_reasons(reasons: Sequence[Reason]) -> str:
    """An SVG picture of reasons, one below the other, with a legend of the edges in it."""
    panels = [panel_of(reason) for reason in reasons]
    width = max([svg.TITLE_WIDTH, *(panel.layout.width for panel in panels)])
    shapes: list[str] = []
    top = 0.0
    for reason, panel in zip(reasons, panels, strict=True):
        if shapes:
            shapes.append(f'<line class="rule" x1="0" x2="100%" y1="{top:.0f}" y2="{top:.0f}"/>')
        top += MARGIN + 4
        for line in svg.wrapped(reason.title, TITLE, width, bold=True):
            shapes.append(svg.text("heading", MARGIN, top, svg.xml_text(line)))
            top += 20
        shapes += svg.moved(panel.shapes(), MARGIN, top)
        top += panel.layout.height + MARGIN
    looks = dict.fromkeys(
        text.look for panel in panels for texts in (panel.edges, panel.frames) for text in texts
    )
    legend, bottom = _legend(looks, top + 12, width)
    styles = svg.looks({name: (LOOKS[name].colour, LOOKS[name].dashes) for name in looks})
    style = f"{STYLE}{OWN_STYLE}{styles}"
    return svg.document(style, [*shapes, *legend], width + 2 * MARGIN, bottom)


def panel_of(reason: Reason) -> Panel:
    """The picture of one reason."""
    diagram = Diagram.of(reason.disjunct)
    groups = list(_groups(reason.groups))
    return Panel(
        diagram,
        [_node(place.term, reason) for place in diagram.places],
        [*map(_edge, reason.atoms), *_group_edges(diagram.links, groups)],
        [FrameText(caption, look) for _, caption, look in groups],
    )


def _node(term: Term, reason: Reason) -> NodeText:
    if isinstance(term, Constant):
        return NodeText(reason.names[term].label, "constant")
    if term not in reason.names:  # a variable of a denied group stands for nobody
        return NodeText(str(unscoped(term)), "nobody")
    label = reason.names[term].label
    if term.is_free:
        return NodeText(label, "answer", tag=str(term), bold=True)
    return NodeText(label, "variable", tag=str(term))


def _edge(atom: CheckedAtom) -> EdgeText:
    """The edge of a condition outside of all groups."""
    if atom.relation is None:
        look = "different" if atom.negated else "equal"
        words = "" if atom.status is Status.TRUE else atom.words
        name = "≠" if atom.negated else "="
        return EdgeText(name, "denied" if words else look, words, has_arrow=False)
    name = f"not {atom.relation.label}" if atom.negated else atom.relation.label
    return EdgeText(name, _LOOK_OF[atom.status], atom.words)


def _groups(checks: Iterable[CheckedGroup]) -> Iterator[tuple[Conjunct, str, str]]:
    """All groups with names filled in, each before those in it, with its caption and its look."""

    def inside(group: Conjunct, caption: str, look: str) -> Iterator[tuple[Conjunct, str, str]]:
        yield group, caption, look
        for inner in group.groups:
            yield from inside(inner, "unless", look)

    for check in checks:
        yield from inside(check.filled, check.words, _LOOK_OF[check.status])


def _group_edges(
    links: Sequence[Link], groups: Sequence[tuple[Conjunct, str, str]]
) -> Iterator[EdgeText]:
    """The edges of all groups, in the order of the links that are in groups."""
    filled = [iter(group.literals) for group, _, _ in groups]
    for link in links:
        if link.frame is not None:
            literal, look = next(filled[link.frame]), groups[link.frame][2]
            if isinstance(literal.atom, Atom):
                name = f"not {literal.atom.relation}" if literal.negated else literal.atom.relation
                yield EdgeText(name, look)
            else:
                yield EdgeText("≠" if literal.negated else "=", look, has_arrow=False)


def _legend(looks: Iterable[str], y: float, width: float) -> tuple[list[str], float]:
    """A sample of each look with its meaning, in lines of a width, and where the last one ends."""
    shapes, x = [], float(MARGIN)
    for name in looks:
        needed = SAMPLE + 8 + svg.text_width(LOOKS[name].legend, LEGEND) + 28
        if x > MARGIN and x + needed > MARGIN + width:
            x, y = float(MARGIN), y + 22
        line = tuple((x + SAMPLE * part / 5, y) for part in range(6))
        shapes.append(svg.line(name, Route((line, line))))
        if LOOKS[name].arrow:
            shapes.append(svg.arrow(name, line[-1], 1.0))
        shapes.append(svg.text("legend", x + SAMPLE + 8, y + 4, LOOKS[name].legend))
        x += needed
    return shapes, y + MARGIN
