"""The end-to-end proof: link prediction on FB15k-237 gives the figures that LibKGE measured."""

import json

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from lmpnn_kge.cli import main
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.queries.ground import Edges, ground
from lmpnn_kge.query.patterns import BETAE, named_patterns

from .. import python_sets


@pytest.mark.long
@pytest.mark.parametrize("name", ["complex", "conve", "distmult", "rescal", "rotate", "transe"])
def test_filtered_test_metrics_are_those_of_libkge(fb15k237, name):
    recorded = yaml.safe_load((fb15k237 / "checkpoints" / "metrics.yaml").read_text())[name]
    file = fb15k237 / "checkpoints" / f"{name}.pt"
    arguments = ["--dataset", str(fb15k237 / "dataset"), "--rank", "test", "--json"]
    result = CliRunner().invoke(main, ["inspect", str(file), *arguments])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["backbone"] == name
    measured = facts["ranking"]
    assert measured["split"] == "test"
    assert measured["mrr"] == pytest.approx(recorded["test_mrr_filtered"], abs=1e-5)
    for hits in ("hits@1", "hits@3", "hits@10"):
        assert measured[hits] == pytest.approx(recorded[hits], abs=1e-4)


@pytest.fixture(scope="module")
def graph(fb15k237):
    return KnowledgeGraph.open(fb15k237 / "dataset")


@pytest.fixture(scope="module")
def edges(graph):
    return python_sets.adjacency(graph)


@pytest.mark.parametrize("name", BETAE)
def test_bulk_answers_are_those_of_plain_sets(graph, edges, name):
    pattern = named_patterns()[name]
    both = Edges.of(graph.edges[0], len(graph.entity_ids), graph.num_relations)
    constants, relations = ground(pattern, both, 1000, np.random.default_rng(0))
    constants, relations = constants[:200], relations[:200]
    assert len(constants) == 200
    found = graph.database.answer(pattern, constants, relations)
    expected = python_sets.answer(name, constants, relations, edges)
    assert [set(found.of(row).tolist()) for row in range(200)] == expected
