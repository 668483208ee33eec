"""Patterns filled backwards from an answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.queries.ground import Edges, ground
from lmpnn_kge.query.formula import And, literals
from lmpnn_kge.query.patterns import BETAE, EFO1, Pattern, named_patterns

from ..conftest import TOY

NAMES = [*BETAE, *EFO1]
PATTERNS = named_patterns()


@pytest.fixture(scope="module")
def toy():
    return KnowledgeGraph.open(TOY / "dataset")


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_a_grounded_query_has_an_answer_if_its_negations_are_dropped(toy, name, seed):
    pattern = PATTERNS[name]
    triples, _ = toy.edges
    edges = Edges.of(triples, len(toy.entity_ids), toy.num_relations)
    constants, relations = ground(pattern, edges, 200, np.random.default_rng(seed))
    if not len(constants) or name in ("coauthor",):
        return
    atoms = tuple(literals(pattern.formula))
    everything = Pattern(And(atoms) if len(atoms) > 1 else atoms[0])
    assert everything.constants == pattern.constants
    answers = toy.database.answer(everything, constants, relations)
    assert (answers.counts > 0).all()


@pytest.mark.parametrize("name", ["2p", "3p", "pi", "2i"])
def test_no_step_is_undone_and_no_branch_repeated(toy, name):
    triples, _ = toy.edges
    edges = Edges.of(triples, len(toy.entity_ids), toy.num_relations)
    constants, relations = ground(PATTERNS[name], edges, 2000, np.random.default_rng(0))
    assert len(constants) > 100
    if name == "2i":
        same = (constants[:, 0] == constants[:, 1]) & (relations[:, 0] == relations[:, 1])
        assert not same.any()
    else:
        assert not (relations[:, 1] == edges.inverse(relations[:, 0])).any()
