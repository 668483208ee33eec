"""Queries obey each of BetaE's rules, and break it if it is switched off."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from lmpnn_kge.cli import main
from lmpnn_kge.errors import QueryError
from lmpnn_kge.queries.rules import Missing, Rules
from lmpnn_kge.queries.sample import BETAE_PRESET, Request, Sampler, sample_all
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.patterns import BETAE, NEGATIVE, named_patterns

from ..conftest import TOY
from .naive import BRANCHES, RELATIONS, RELAXED, STEPS, Naive, random_graph, rows

PATTERNS = named_patterns()
OBSERVED = {"valid": "train", "test": "valid"}
COUNT = 60


@pytest.fixture(scope="module")
def graph():
    return random_graph()


@pytest.fixture(scope="module")
def naive(graph):
    return {split: Naive(graph, split) for split in ("train", "valid", "test")}


def sample(graph, split, names, **rules):
    requests = [Request(split, name, PATTERNS[name], COUNT) for name in names]
    changed = replace(Rules(), **rules)
    return sample_all(graph, requests, seed=2, rules=changed)[split]


@pytest.fixture(scope="module")
def sampled(graph):
    return {split: sample(graph, split, BETAE) for split in ("train", "valid", "test")}


def broken(queries, obeys):
    """How many queries do not obey; there must be some at all."""
    assert len(queries)
    return sum(not obeys(constants, relations) for constants, relations, _, _ in rows(queries))


def violated(graph, split, names, rule, obeys_of):
    """Whether some query breaks a rule that is switched off."""
    found = sample(graph, split, names, **{rule: False})
    return any(broken(found[name], obeys_of(name)) for name in names if len(found[name]))


@pytest.mark.parametrize("split", OBSERVED)
def test_a_query_has_an_answer_that_needs_a_missing_edge(graph, naive, sampled, split):
    def obeys_of(name):
        def obeys(*query):
            full, seen = (naive[s].answers(name, *query) for s in (split, OBSERVED[split]))
            return bool(full.keys() - seen.keys())

        return obeys

    for name, queries in sampled[split].items():
        assert broken(queries, obeys_of(name)) == 0
    assert violated(graph, split, ["1p", "2i"], "hard_answer", obeys_of)


def test_a_query_has_few_answers(graph, naive):
    def few(name, **rules):
        sampler = Sampler(graph, max_answers=5, rules=replace(Rules(), **rules))
        queries = sampler.sample(Request("test", name, PATTERNS[name], COUNT))
        return broken(queries, lambda *query: len(naive["test"].answers(name, *query)) <= 5)

    assert [few(name) for name in ("1p", "2p", "3p", "up", "2in")] == [0] * 5
    assert few("2p", few_answers=False) > 0
    assert BETAE_PRESET.sampler(graph).max_answers == 100


@pytest.mark.parametrize("split", OBSERVED)
def test_a_negation_loses_an_observed_answer(graph, naive, sampled, split):
    def obeys_of(name):
        def obeys(*query):
            full, seen = (naive[s].answers(name, *query) for s in (split, OBSERVED[split]))
            return bool(seen.keys() - full.keys())

        return obeys

    for name in NEGATIVE:
        assert broken(sampled[split][name], obeys_of(name)) == 0
    assert violated(graph, split, NEGATIVE, "lost_answer", obeys_of)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_negation_excludes_an_entity(graph, naive, sampled, split):
    def obeys_of(name):
        other, constants, relations = RELAXED[name]

        def obeys(s, r):
            loose = [s[i] for i in constants], [r[i] for i in relations]
            return (
                naive[split].answers(name, s, r).keys() < naive[split].answers(other, *loose).keys()
            )

        return obeys

    for name in NEGATIVE:
        assert broken(sampled[split][name], obeys_of(name)) == 0
    if split == "train":
        assert violated(graph, split, ["inp"], "excluding", obeys_of)


@pytest.mark.parametrize("split", ["train", "test"])
def test_no_step_is_undone_by_its_own_inverse(graph, sampled, split):
    def obeys_of(name):
        return lambda s, r: all(
            (r[a] - r[b]) % (2 * RELATIONS) != RELATIONS for a, b in STEPS[name]
        )

    for name in STEPS:
        assert broken(sampled[split][name], obeys_of(name)) == 0
    assert violated(graph, split, STEPS, "no_return", obeys_of)


@pytest.mark.parametrize("split", ["train", "test"])
def test_no_branch_positive_or_negated_repeats_another(graph, sampled, split):
    def obeys_of(name):
        return lambda s, r: all((s[a], r[b]) != (s[c], r[d]) for (a, b), (c, d) in BRANCHES[name])

    for name in BRANCHES:
        assert broken(sampled[split][name], obeys_of(name)) == 0
    assert violated(graph, split, ["2i", "3i", "2u"], "no_repeat", obeys_of)


@pytest.mark.parametrize("name", BETAE)
def test_no_query_that_obeys_is_dropped_before_it_is_answered(graph, name):
    """The cheap check by missing edges: the queries are the same without it."""
    request = Request("test", name, PATTERNS[name], COUNT)
    quick = Sampler(graph, seed=4).sample(request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Missing, "promising", lambda self, pattern, cs, rs, rules: cs[:, 0] >= 0)
        slow = Sampler(graph, seed=4).sample(request)
    assert np.array_equal(quick.constants, slow.constants)
    assert np.array_equal(quick.relations, slow.relations)


def test_rules_are_switched_by_name():
    rules = Rules().switched(["lost-answer=off", "shares=on"])
    assert rules == Rules(lost_answer=False, shares=True)
    assert rules.to_json()["lost-answer"] is False
    with pytest.raises(QueryError, match="no rule 'lost'; choose from: excluding, few-answers"):
        rules.switched(["lost=off"])
    with pytest.raises(QueryError, match="is on or off, not 'no': write lost-answer=off"):
        rules.switched(["lost-answer=no"])


def test_a_store_records_its_rules(tmp_path):
    store = str(tmp_path / "store")
    command = ["sample", "--dataset", str(TOY / "dataset"), "--types", "1p,2in", "--count", "3"]
    result = CliRunner().invoke(main, [*command, "--out", store, "--rule", "lost-answer=off"])
    assert result.exit_code == 0, result.output
    recorded = QueryStore.open(store).provenance
    assert recorded["preset"] == "betae"
    assert [name for name, holds in recorded["rules"].items() if not holds] == [
        "lost-answer",
        "shares",
    ]
