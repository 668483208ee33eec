"""Queries with negation are found on sparse graphs, where random draws rarely keep to the rules."""

import numpy as np
import pytest

from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries import sample
from lmpnn_kge.queries.ground import Edges, ground
from lmpnn_kge.queries.patience import FEW, PATIENCE, SCARCE, Patience
from lmpnn_kge.queries.rules import negations
from lmpnn_kge.queries.sample import Request, Sampler
from lmpnn_kge.query.formula import And, literals
from lmpnn_kge.query.patterns import NEGATIVE, Pattern, named_patterns, parse_pattern

PATTERNS = named_patterns()
ENTITIES, RELATIONS = 3_000, 20


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """A random graph with three triples per entity; a twentieth is valid."""
    random = np.random.default_rng(0)
    size = 3 * ENTITIES
    relation = random.integers(RELATIONS, size=size)
    heads, tails = (ENTITIES * random.random((2, size)) ** 2).astype(np.int64)
    triples = np.unique(np.stack([heads, relation, tails], axis=1), axis=0)
    valid = random.random(len(triples)) < 0.05
    names = [f"e{i}" for i in range(ENTITIES)], [f"r{i}" for i in range(RELATIONS)]
    splits = {"train": triples[~valid], "valid": triples[valid], "test": triples[:0]}
    return KnowledgeGraph(tmp_path_factory.mktemp("sparse"), "sparse", Vocabulary(*names), splits)


def yielding(*rounds):
    patience = Patience()
    for gained in rounds:
        patience.count(gained)
    return patience


def test_a_search_is_given_up_after_idle_rounds_however_much_it_found_before():
    assert not yielding(10_000, *[FEW - 1] * (PATIENCE - 1)).exhausted
    assert yielding(10_000, *[FEW - 1] * PATIENCE).exhausted


def test_lucky_rounds_now_and_then_do_not_keep_a_search_alive():
    lucky = [FEW, *[0] * (PATIENCE // 2)]
    assert not yielding(*lucky).exhausted
    assert yielding(*lucky * 3).exhausted
    assert not yielding(*[FEW] * 1_000).exhausted


def test_little_is_scarce_only_after_enough_rounds():
    assert not yielding(*[1] * (PATIENCE - 1)).scarce
    assert yielding(*[SCARCE - 1] * PATIENCE).scarce
    assert not yielding(*[SCARCE] * PATIENCE).scarce


@pytest.mark.parametrize(
    ("text", "atoms"),
    [
        ("r1(s1,f)&r2(s2,f)", []),
        ("r1(s1,f)&!r2(s2,f)&!r3(s3,f)", [["r2"], ["r3"]]),
        ("!(r1(s1,e1)&r2(e1,f))&r3(s2,f)", [["r1", "r2"]]),
        ("r1(s1,f)&f!=s2", []),
        ("r1(s1,f)&!(r2(s2,f)&!r3(s3,f))", []),
    ],
)
def test_the_negations_are_those_of_a_conjunction(text, atoms):
    groups = negations(parse_pattern(text))
    assert [[atom.relation for atom in group] for group in groups] == atoms


@pytest.mark.parametrize("name", NEGATIVE)
def test_an_atom_filled_apart_has_an_edge_of_its_own(sparse, name):
    pattern = PATTERNS[name]
    full, missing = (
        Edges.of(triples, ENTITIES, RELATIONS)
        for triples in (sparse.edges[0], sparse.triples("valid"))
    )
    everything = Pattern(And(tuple(literals(pattern.formula))))
    for atom in negations(pattern)[0]:
        columns = ground(pattern, full, 2_000, np.random.default_rng(0), apart={atom: missing})
        assert len(columns[0]) > 100
        answers, seen = (
            sparse.database.answer(everything, *columns, split) for split in ("valid", "train")
        )
        assert (answers.counts > seen.counts).all()


@pytest.mark.parametrize("name", ["2in", "inp"])
def test_scarce_queries_are_found_from_missing_edges(sparse, name, monkeypatch):
    monkeypatch.setattr(sample, "BATCH", 2_000)
    request = Request("valid", name, PATTERNS[name], 100)
    found = Sampler(sparse).sample(request)
    columns = found.constants, found.relations
    full, seen = (sparse.database.answer(PATTERNS[name], *columns, s) for s in ("valid", "train"))
    lost = [len(np.setdiff1d(seen.of(row), full.of(row))) for row in range(len(found))]
    assert min(lost) > 0
    monkeypatch.setattr(Sampler, "_negations", lambda *_: [])
    assert len(found) > 2 * len(Sampler(sparse).sample(request))
