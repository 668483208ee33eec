"""A picture as data: where its nodes, edges and frames are, for programs that draw it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmpnn_kge.query.drawing import svg
from lmpnn_kge.query.drawing.panel import Panel
from lmpnn_kge.query.drawing.parts import Rect
from lmpnn_kge.query.formula import Equal, Term, Variable
from lmpnn_kge.query.normal_form import unscoped

#: The id of the entity that a term stands for, if it stands for one.
IdOf = Callable[[Term], str | None]


def graph_data(panel: Panel, id_of: IdOf) -> dict[str, Any]:
    """The nodes, edges and frames of a picture; edges name their ends by the numbers of nodes."""
    layout, diagram = panel.layout, panel.diagram
    nodes = [
        {
            "term": str(unscoped(place.term) if isinstance(place.term, Variable) else place.term),
            "kind": text.style,
            "label": text.label,
            "tag": text.tag,
            "id": id_of(place.term),
            "frame": place.frame,
            **_rect(rect),
        }
        for place, text, rect in zip(diagram.places, panel.nodes, layout.nodes, strict=True)
    ]
    edges = []
    columns = diagram.links, panel.edges, layout.texts, layout.routes
    for link, text, rect, route in zip(*columns, strict=True):
        (x, y), direction = route.end
        edges.append({
            "name": text.name,
            "look": text.look,
            "words": text.words,
            "arrow": text.has_arrow,
            "head": link.head,
            "tail": link.tail,
            "frame": link.frame,
            "negated": link.literal.negated,
            "equality": isinstance(link.literal.atom, Equal),
            "path": svg.path_data(route),
            "tip": {"x": _pixel(x), "y": _pixel(y), "direction": direction},
            **_rect(rect),
        })  # fmt: skip
    frames = [
        {
            "caption": text.caption,
            "look": text.look,
            "caption_x": _pixel(caption.x),
            "caption_y": _pixel(caption.y),
            **_rect(rect),
        }
        for text, rect, caption in zip(panel.frames, layout.frames, layout.captions, strict=True)
    ]
    size = {"width": _pixel(layout.width), "height": _pixel(layout.height)}
    return {**size, "nodes": nodes, "edges": edges, "frames": frames}


def _rect(rect: Rect) -> dict[str, float]:
    """A rectangle by its centre and size."""
    return {name: _pixel(value) for name, value in vars(rect).items()}


def _pixel(value: float) -> float:
    return round(value, 1)
