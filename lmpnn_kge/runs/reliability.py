"""How reliable the probabilities of edges are, on the test triples of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.methods.calibration import Reliability
from lmpnn_kge.runs.kept import CALIBRATED, RAW
from lmpnn_kge.runs.knowledge import Knowledge
from lmpnn_kge.search.edges import EdgeProbability, Population
from lmpnn_kge.search.facts import Facts


def measure_on_test(
    edges: EdgeProbability, triples: Callable[[str], Triples]
) -> dict[str, Reliability]:
    """The reliability on test, and that of sigmoids of the scores; empty without test triples.

    triples gives the triples of a split in the rows of the backbone.
    """
    train, valid, test = map(triples, ("train", "valid", "test"))
    if not len(test):
        return {}
    earlier = Facts.of(
        np.concatenate([train, valid]), edges.facts.num_entities, edges.facts.num_relations
    )
    share = len(test) / (len(valid) + len(test)) if edges.population == "every" else 1.0
    measured, raw = edges.measure_both(test, earlier.to(edges.facts.keys.device), share=share)
    return {CALIBRATED: measured, RAW: raw}


def measure_edges(
    backbone: Backbone, graph: KnowledgeGraph
) -> dict[Population, dict[str, Reliability]]:
    """Fit the probabilities of edges on valid, and measure them on test, for each population."""
    knowledge = Knowledge(graph, backbone.vocabulary, backbone.device)
    valid, test = knowledge.triples("valid"), knowledge.triples("test")
    measured: dict[Population, dict[str, Reliability]] = {}
    for population in get_args(Population):
        edges = EdgeProbability.fit(
            backbone,
            knowledge.facts,
            valid,
            population=population,
            held_out=len(valid) + len(test),
        )
        measured[population] = measure_on_test(edges, knowledge.triples)
    return measured
