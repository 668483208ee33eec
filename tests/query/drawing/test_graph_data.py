"""Drawings as data: the same places and numbers as in the picture."""

import json

from lmpnn_kge.query.draw import panel_of
from lmpnn_kge.query.drawing.graph_data import graph_data
from lmpnn_kge.query.formula import Constant
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse


def data(text):
    (disjunct,) = normalise(parse(text))
    panel = panel_of(disjunct)
    return panel, graph_data(panel, lambda term: (isinstance(term, Constant) and term.name) or None)


def test_nodes_edges_and_frames_have_their_places_and_ends():
    panel, graph = data("continent(?, Europe) & !(borders(France, ?x) & borders(?x, ?)) & ? != a")
    assert graph["nodes"][0]["term"] == "?"
    assert {node["id"] for node in graph["nodes"]} == {None, "Europe", "France", "a"}
    names = [(edge["name"], edge["frame"], edge["equality"]) for edge in graph["edges"]]
    assert names == [
        ("continent", None, False), ("≠", None, True), ("borders", 0, False), ("borders", 0, False)
    ]  # fmt: skip
    (frame,) = graph["frames"]
    assert frame["caption"] == "not"
    for node, rect in zip(graph["nodes"], panel.layout.nodes, strict=True):
        assert (node["x"], node["width"]) == (round(rect.x, 1), round(rect.width, 1))
    assert all(edge["path"].startswith("M") for edge in graph["edges"])


def test_the_data_is_json():
    _, graph = data('"<img src=x onerror=alert(1)>"("a\\nb", ?)')
    assert json.loads(json.dumps(graph)) == graph
