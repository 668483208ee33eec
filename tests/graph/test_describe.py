"""The profile of a graph, counted again by plain Python."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge import KnowledgeGraph
from lmpnn_kge.graph import relation_rules
from lmpnn_kge.graph.components import component_sizes
from lmpnn_kge.graph.relation_rules import find_leaks
from lmpnn_kge.graph.vocabulary import Vocabulary

from ..formulas import graphs
from ..toy_runs import cli
from .test_database import graph_of


def components(triples, entities: int) -> list[int]:
    """The sizes of components, by joining sets."""
    groups = [{entity} for entity in range(entities)]
    for s, _, o in triples:
        joined = [group for group in groups if s in group or o in group]
        groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    return sorted(map(len, groups), reverse=True)


edges = st.sets(st.tuples(st.integers(0, 29), st.just(0), st.integers(0, 29)), max_size=40)


@given(edges)
@settings(deadline=None)
def test_components_are_those_that_joining_sets_gives(triples):
    rows = np.array(sorted(triples), np.int64).reshape(-1, 3)
    assert component_sizes(rows, 30).tolist() == components(triples, 30)


def test_a_long_path_is_one_component():
    path = np.stack([np.arange(9999), np.zeros(9999, np.int64), np.arange(1, 10000)], axis=1)
    assert component_sizes(path[::-1], 10_001).tolist() == [10_000, 1]


triples_of_three = st.sets(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), max_size=20
)


@given(triples_of_three, triples_of_three, st.sampled_from([0.3, 0.8, 1.0]), st.integers(1, 3))
@settings(deadline=None, max_examples=60)
def test_rules_between_relations_are_counted_exactly(train, test, share, least):
    test = test - train
    everything = sorted(train | test)
    level = np.array([2 if triple in test else 0 for triple in everything], np.int64)
    rows = np.array(everything, np.int64).reshape(-1, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relation_rules, "SHARE", share)
        patch.setattr(relation_rules, "PAIRS", least)
        leaks = find_leaks(rows, level, 3)
    expected, leaked = {}, set()
    for premise in range(3):
        pairs = {(s, o) for s, p, o in everything if p == premise}
        for conclusion in range(3):
            for inverse in (False, True):
                if conclusion == premise and not inverse:
                    continue
                own = conclusion == premise
                shared = {
                    (s, o) for s, o in pairs
                    if ((o, conclusion, s) if inverse else (s, conclusion, o)) in train | test
                    and not (own and s == o)
                }  # fmt: skip
                if len(shared) < least or len(shared) < share * len(pairs):
                    continue
                following = {
                    (o, conclusion, s) if inverse else (s, conclusion, o)
                    for s, p, o in train if p == premise
                } & test  # fmt: skip
                expected[premise, conclusion, inverse] = len(shared), len(pairs), len(following)
                leaked |= following
    found = {
        (r.premise, r.conclusion, r.inverse): (r.shared, r.pairs, r.in_test) for r in leaks.rules
    }
    assert found == expected
    assert leaks.test_triples == len(leaked)
    assert [r.in_test for r in leaks.rules] == sorted(
        (r.in_test for r in leaks.rules), reverse=True
    )


@given(train=graphs, valid=graphs, test=graphs)
@settings(deadline=None, max_examples=40)
def test_a_profile_counts_what_is_there(train, valid, test):
    profile = graph_of(train, valid, test).describe()
    everything = train | valid | test
    assert profile.triples == len(everything)
    assert profile.splits == {"train": len(train), "valid": len(valid), "test": len(test)}
    assert profile.repeated_triples == len(train) + len(valid) + len(test) - len(everything)
    degree = Counter(entity for s, _, o in everything for entity in (s, o))
    assert profile.degree["maximum"] == max(degree.values(), default=0)
    assert profile.isolated == 4 - len(degree)
    assert list(profile.components) == components(everything, 4)
    seen = {entity for s, _, o in train for entity in (s, o)}
    assert profile.unseen_entities == len(set(degree) - seen)
    known = {p for _, p, _ in train}
    held_out = everything - train
    assert profile.unseen_triples == sum(
        not {s, o} <= seen or p not in known for s, p, o in held_out
    )
    for relation in profile.relations:
        own = [(s, o) for s, p, o in everything if f"r{p}" == relation.relation.id]
        assert relation.triples == sum(relation.splits.values()) == len(own)
        assert relation.heads == len({s for s, _ in own})
        assert relation.tails == len({o for _, o in own})
        if own:
            assert tuple(int(end.id[1:]) for end in relation.example) in own
            most = Counter(s for s, _ in own).most_common()[0][1]
            assert relation.head_sample[0].count == most
    json.dumps(profile.to_json())
    assert max(map(len, str(profile).splitlines())) <= 80


def graph_with(**splits) -> KnowledgeGraph:
    rows = {split: np.array(splits.get(split, []), np.int64).reshape(-1, 3)
            for split in ("train", "valid", "test")}  # fmt: skip
    names = Vocabulary([f"e{i}" for i in range(20)], ["likes", "liked by"])
    return KnowledgeGraph(Path(), "tiny", names, rows)


def test_what_a_graph_lacks_is_said_in_sentences():
    likes = [(i, 0, i + 1) for i in range(8)]
    liked_by = [(o, 1, s) for s, _, o in likes]
    graph = graph_with(train=[*likes, *liked_by[:6], likes[0]], test=[*liked_by[6:], (9, 0, 10)])
    assert graph.describe().missing == (
        "There are no valid triples; `lmpnn-kge split` holds some out.",
        "9 entities without any triple.",
        "2 entities and 0 relations of valid and test without a training triple, in 1 triple.",
        "1 repeated triple, in one split or in several.",
        "2 test triples (66.7%) follow from a training triple, because relations repeat or invert "
        "each other (see below).",
    )
    assert "likes(x, y)\n  → liked by(y, x)\n    8 of 9 pairs (88.9%); 2 test" in str(
        graph.describe()
    )


def test_an_empty_graph_has_a_profile():
    assert "20 entities, 2 relations, 0 triples" in str(graph_with().describe())


def test_names_of_any_length_and_any_characters_fit_the_page():
    names = Vocabulary(["x" * 300, "\x1b[31m\n" * 40], ["r" * 200, "s\t" * 60])
    rows = {"train": np.array([(0, 0, 1), (1, 1, 0)]), "valid": np.empty((0, 3), np.int64)}
    graph = KnowledgeGraph(Path(), "n\n" * 99, names, rows | {"test": rows["valid"]})
    lines = str(graph.describe()).split("\n")
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    assert "\x1b" not in graph._repr_html_()


def test_the_command_prints_the_profile(toy_dataset):
    profile = KnowledgeGraph.open(toy_dataset).describe()
    assert cli("graph", toy_dataset).stdout == f"{profile}\n"
    assert cli("graph", toy_dataset, "-n", 1).stdout == f"{profile.to_text(1)}\n"
    content = json.loads(cli("graph", toy_dataset, "--json").stdout)
    assert content["entities"] == 40
    assert content["leaked"] == 13
    assert len(content["relations"]) == 6
    assert "nowhere is neither a folder" in cli("graph", toy_dataset / "nowhere", code=2).stderr


def test_fb15k237_has_no_test_triple_that_follows_by_a_rule(fb15k237):
    profile = KnowledgeGraph.open(fb15k237 / "dataset").describe()
    assert (profile.entities, len(profile.relations), profile.triples) == (14541, 237, 310116)
    assert profile.rules
    assert profile.leaked == 0
    assert max(map(len, profile.to_text(1000).splitlines())) <= 80
