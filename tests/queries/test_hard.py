"""Hard sets: answers by the missing edges they need, as many of each, from no dominant source."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.cli import main
from lmpnn_kge.errors import QueryError
from lmpnn_kge.queries.balance import Balance
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.hard import HARD_PRESET, TYPES, HardSampler, classes_of, hard_requests
from lmpnn_kge.queries.sample import Request
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.query.patterns import named_patterns, parse_pattern

from .. import made_up
from ..conftest import TOY
from .naive import RELATIONS, Naive, random_graph, rows

PATTERNS = named_patterns()
OBSERVED = {"valid": "train", "test": "valid"}
QUOTA = 60


@pytest.fixture(scope="module")
def graph():
    return random_graph()


def draw(graph, split, name, seed=1, quota=QUOTA, **rules):
    sampler = HardSampler(graph, seed, rules=replace(HARD_PRESET.rules, **rules))
    return sampler.sample(Request(split, name, PATTERNS[name], quota))


@pytest.fixture(scope="module")
def sampled(graph):
    return {(split, name): draw(graph, split, name) for split in OBSERVED for name in TYPES}


def test_the_types_are_the_14_and_two_of_four_atoms():
    atoms = {name: classes_of(PATTERNS[name]) for name in TYPES}
    assert atoms == {
        "1p": 1, "2p": 2, "3p": 3, "2i": 2, "3i": 3, "pi": 3, "ip": 3, "2u": 1, "up": 2,
        "2in": 1, "3in": 2, "inp": 2, "pin": 2, "pni": 1, "4p": 4, "4i": 4,
    }  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("split", OBSERVED)
def test_classes_are_the_missing_edges_that_answers_need(graph, sampled, split, name):
    full, seen = Naive(graph, split), Naive(graph, OBSERVED[split])
    queries = sampled[split, name]
    assert len(queries) > 5
    for constants, relations, easy, hard in rows(queries):
        answers = full.answers(name, constants, relations)
        observed = seen.answers(name, constants, relations)
        assert hard
        assert easy | hard == {e: 0 if e in observed else cost for e, cost in answers.items()}
        assert not easy.keys() & hard.keys()
        assert min(hard.values()) > 0


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("split", OBSERVED)
def test_every_class_has_its_quota_and_the_last_is_filled_first(sampled, split, name):
    queries = sampled[split, name]
    classes = classes_of(PATTERNS[name])
    assert HardSampler.lack(Request(split, name, PATTERNS[name], QUOTA), queries) == ""
    pairs = Counter()
    for _, _, _, hard in rows(queries):
        assert pairs[classes] == QUOTA or classes in hard.values()
        pairs.update(hard.values())
    assert pairs == dict.fromkeys(range(1, classes + 1), QUOTA)


def shares(queries):
    """The largest share of pairs that an anchor, and that a relation in any direction, is in."""
    anchors, relations = Counter(), Counter()
    for constants, rs, _, hard in rows(queries):
        anchors.update(dict.fromkeys(constants, len(hard)))
        relations.update(dict.fromkeys({r % RELATIONS for r in rs}, len(hard)))
    return [max(counter.values()) / len(queries.hard.values) for counter in (anchors, relations)]


@pytest.mark.parametrize("name", TYPES)
def test_no_relation_and_no_anchor_is_in_a_fifth_of_the_pairs(sampled, name):
    for split in OBSERVED:
        assert max(shares(sampled[split, name])) < 0.2


def test_the_limit_of_shares_can_be_switched_off(graph):
    names = ("3i", "4p", "4i", "3p")
    assert max(max(shares(draw(graph, "test", name, shares=False))) for name in names) >= 0.2


def test_queries_are_distinct_and_the_same_for_a_seed(graph, sampled):
    queries, again = sampled["test", "2i"], draw(graph, "test", "2i")
    columns = np.concatenate([queries.constants, queries.relations], axis=1)
    assert len(np.unique(columns, axis=0)) == len(columns)
    assert np.array_equal(queries.constants, again.constants)
    assert np.array_equal(queries.hard.values, again.hard.values)
    assert not np.array_equal(queries.constants, draw(graph, "test", "2i", seed=2).constants)


def test_a_class_that_cannot_be_filled_is_named(graph):
    request = Request("test", "1p", PATTERNS["1p"], 100_000)
    queries = HardSampler(graph, rules=HARD_PRESET.rules).sample(request)
    found = len(queries.hard.values)
    assert HardSampler.lack(request, queries) == (
        f"fewer than 100,000 answers were found: {found:,} that need 1 missing edges"
    )


def test_a_pattern_without_positive_atoms_is_refused(graph):
    request = Request("test", "odd", parse_pattern("!r1(s1,f)"), 5)
    with pytest.raises(QueryError, match="no positive atom"):
        HardSampler(graph).sample(request)


def test_a_split_without_edges_has_no_hard_queries(graph):
    bare = replace(graph, splits={**graph.splits, "test": np.zeros((0, 3), np.int64)})
    queries = draw(bare, "test", "2p")
    assert len(queries) == 0
    assert HardSampler.lack(Request("test", "2p", PATTERNS["2p"], 5), queries)


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_whatever_comes_every_admission_keeps_the_limits(data):
    classes, quota, relations = (data.draw(st.integers(1, n)) for n in (3, 20, 8))
    count = data.draw(st.integers(0, 30))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    hard = [random.choice(50, random.integers(1, 6), replace=False) for _ in range(count)]
    costs = random.integers(1, classes + 1, sum(map(len, hard)))
    made = made_up.queries(PATTERNS["2i"], count, 50, relations)
    balance = Balance(classes, quota, relations)
    offered = Queries(
        made.pattern,
        made.constants,
        made.relations,
        made_up.answers([[]] * count, []),
        made_up.answers(hard, costs),
    )
    admitted = balance.admit(offered, random)
    pairs, anchors, having = Counter(), Counter(), Counter()
    for constants, rs, easy, answers in rows(admitted):
        assert pairs[classes] == quota or classes in answers.values()
        pairs.update(answers.values())
        anchors.update(dict.fromkeys(constants, len(answers)))
        having.update(dict.fromkeys({r % relations for r in rs}, len(answers)))
        assert max(pairs.values()) <= quota
        if pairs.total() > 0.1 * quota * classes:
            for source in (*(anchors[c] for c in constants), *(having[r % relations] for r in rs)):
                assert source < 0.2 * pairs.total()
        assert easy or answers
    assert [pairs[edges] for edges in range(1, classes + 1)] == balance.pairs


def test_the_preset_scales_to_the_graph_and_has_no_training_queries(graph):
    requests = hard_requests(graph)
    assert {request.split for request in requests} == {"valid", "test"}
    assert [request.name for request in requests if request.split == "test"] == [*TYPES]
    train = graph.triples("train")
    one_hop = {(s, p) for s, p, _ in train.tolist()} | {(o, -p) for _, p, o in train.tolist()}
    assert 0 < requests[0].count <= len(one_hop) // 15 + 500


def test_the_command_writes_a_store_and_names_what_it_lacks(tmp_path):
    command = ["sample", "--dataset", str(TOY / "dataset"), "--out", str(tmp_path / "hard")]
    arguments = ["--preset", "hard", "--types", "1p,2i,4p", "--count", "4", "--rule", "shares=off"]
    result = CliRunner().invoke(main, [*command, *arguments])
    assert result.exit_code == 0, result.output
    store = QueryStore.open(tmp_path / "hard")
    assert store.provenance["preset"] == "hard"
    assert store.provenance["rules"]["few-answers"] is False
    assert [*store.splits] == ["valid", "test"]
    assert np.bincount(store.splits["test"]["2i"].hard.costs)[1:].max() == 4
    assert "fewer than 4 answers were found" in result.stderr


def test_costs_of_easy_answers_are_kept_in_files(sampled, graph, tmp_path):
    queries = sampled["test", "3i"]
    store = QueryStore("random", graph.vocabulary, {"test": {"3i": queries}}, {})
    read = write_store(store, tmp_path / "store").splits["test"]["3i"]
    assert np.array_equal(read.easy.costs, queries.easy.costs)
    assert queries.easy.costs.max() > 0
