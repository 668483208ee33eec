"""Sampled queries with several free variables: their answers are tuples."""

import numpy as np
import pytest
from click.testing import CliRunner

from lmpnn_kge.cli import main
from lmpnn_kge.errors import DatasetError
from lmpnn_kge.graph.answers import Answers, split_answers
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.hard import HARD_PRESET
from lmpnn_kge.queries.renumber import renumber_store
from lmpnn_kge.queries.sample import Request, sample_all
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.patterns import EFOK, named_patterns, parse_pattern

from ..conftest import TOY
from .naive import random_graph

PATTERNS = named_patterns()
SPLITS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def graph():
    return random_graph()


@pytest.fixture(scope="module")
def sampled(graph):
    requests = [Request(split, name, PATTERNS[name], 10) for split in SPLITS for name in EFOK]
    return sample_all(graph, requests, seed=3)


def edges_of(graph, split):
    triples, level = graph.edges
    known = triples[level <= SPLITS.index(split)].tolist()
    count = graph.num_relations
    return {(s, p, o) for s, p, o in known} | {(o, p + count, s) for s, p, o in known}


def naive(queries, row, edges):
    """The answers of one query by joining its atoms, one after the other."""
    pattern = queries.pattern
    (conjunct,) = normalise(pattern.formula)
    constants = dict(zip(pattern.constants, queries.constants[row].tolist(), strict=True))
    relations = dict(zip(pattern.relations, queries.relations[row].tolist(), strict=True))
    rows = [{}]
    for literal in sorted(conjunct.literals, key=lambda literal: literal.negated):
        relation = relations[literal.atom.relation]
        extended = []
        for values in rows:
            ends = [constants.get(t.name, values.get(t)) for t in literal.terms]
            matches = [
                (s, o)
                for s, p, o in edges
                if p == relation and ends[0] in (None, s) and ends[1] in (None, o)
            ]
            if literal.negated:
                extended += [] if matches else [values]
            else:
                extended += [
                    values
                    | {t: v for t, v in zip(literal.terms, m, strict=True) if t in pattern_terms}
                    for pattern_terms in [{*conjunct.free, *conjunct.bound}]
                    for m in matches
                ]
        rows = extended
    return {tuple(values[v] for v in conjunct.free) for values in rows}


@pytest.mark.parametrize("name", EFOK)
def test_easy_and_hard_tuples_are_those_of_plain_joins(graph, sampled, name):
    for split, observed in (("valid", "train"), ("test", "valid")):
        queries = sampled[split][name]
        assert len(queries) == 10
        full, seen = edges_of(graph, split), edges_of(graph, observed)
        for row in range(3):
            easy, hard = ({*map(tuple, a.of(row).tolist())} for a in (queries.easy, queries.hard))
            every, known = naive(queries, row, full), naive(queries, row, seen)
            assert (easy, hard) == (every & known, every - known)
            assert hard
            assert len(every) <= 100


@pytest.mark.parametrize("name", EFOK)
def test_training_tuples_are_answered_on_the_training_graph(graph, sampled, name):
    queries = sampled["train"][name]
    assert len(queries) == 10
    assert queries.easy.counts.max() <= 100
    edges = edges_of(graph, "train")
    for row in range(2):
        assert {*map(tuple, queries.easy.of(row).tolist())} == naive(queries, row, edges)


def test_the_marginals_have_the_entities_of_the_tuples(sampled):
    queries = sampled["test"]["3f-p"]
    for place, marginal in enumerate(queries.marginals):
        assert len(marginal.pattern.free) == 1
        for row in range(len(queries)):
            easy, hard = (
                {t[place] for t in a.of(row).tolist()} for a in (queries.easy, queries.hard)
            )
            assert {*marginal.easy.of(row).tolist()} == easy
            assert {*marginal.hard.of(row).tolist()} == hard - easy


def test_a_hard_set_balances_tuples_by_missing_edges(graph):
    request = Request("test", "2f-p", PATTERNS["2f-p"], 400)
    queries = sample_all(graph, [request], preset=HARD_PRESET)["test"]["2f-p"]
    assert np.bincount(queries.hard.costs, minlength=3).tolist() == [0, 400, 400]
    assert queries.hard.values.shape == (800, 2)


def test_a_store_keeps_tuples(tmp_path, graph, sampled):
    store = write_store(QueryStore("random", graph.vocabulary, sampled), tmp_path / "store")
    for split in SPLITS:
        for name, queries in sampled[split].items():
            kept = store.queries(split)[name]
            assert kept.easy.values.tolist() == queries.easy.values.tolist()
            assert kept.hard.offsets.tolist() == queries.hard.offsets.tolist()
    first = store.queries("test")["2f-p"]
    assert store.names(first.hard.of(0))[0] == [f"e{n}" for n in first.hard.of(0)[0]]
    reverse = Vocabulary(graph.entity_ids[::-1], graph.relation_ids)
    renumbered, dropped = renumber_store(store, reverse)
    assert not dropped
    turned = len(graph.entity_ids) - 1 - renumbered.queries("test")["2f-p"].hard.of(0)
    assert sorted(turned.tolist()) == first.hard.of(0).tolist()


def test_a_store_with_tuples_of_another_width_is_damaged(tmp_path, graph):
    none = Answers.none(1, 2)
    wrong = Answers(np.array([0, 1]), np.array([3], np.int32))
    pattern = parse_pattern("r1(s1,f1)&r2(f1,f2)")
    ints = np.zeros((1, 1), np.int32), np.zeros((1, 2), np.int32)
    store = QueryStore(
        "g", graph.vocabulary, {"train": {"x": Queries(pattern, *ints, wrong, none)}}
    )
    with pytest.raises(ValueError, match="easy answers are"):
        write_store(store, tmp_path / "store")
    with pytest.raises(DatasetError):
        QueryStore.open(tmp_path / "store")


def test_tuples_are_split_by_the_whole_tuple():
    full = Answers(np.array([0, 3, 4]), np.array([[0, 1], [0, 2], [1, 0], [0, 1]], np.int32))
    seen = Answers(np.array([0, 2, 3]), np.array([[0, 2], [2, 0], [1, 0]], np.int32))
    easy, hard = split_answers(full, seen)
    assert easy.values.tolist() == [[0, 2]]
    assert (hard.values.tolist(), hard.offsets.tolist()) == ([[0, 1], [1, 0], [0, 1]], [0, 2, 3])


def test_types_are_sampled_and_shown_on_the_command_line(tmp_path):
    store = str(tmp_path / "store")
    dataset = ["--dataset", str(TOY / "dataset")]
    run = CliRunner().invoke
    made = run(main, ["sample", *dataset, "-o", store, "--types", "2f-p,2f-nm", "--count", "5"])
    assert made.exit_code == 0, made.output
    shown = run(main, ["queries", "show", store, "--split", "test", "--type", "2f-p"])
    assert "?1" in shown.output
    assert "hard  (" in shown.output
    graph = KnowledgeGraph.open(TOY / "dataset")
    queries = QueryStore.open(store).queries("test")["2f-p"]
    question = QueryStore.open(store).question(queries, 0)
    assert len(graph.answer(question)) == len(queries.easy.of(0)) + len(queries.hard.of(0))
