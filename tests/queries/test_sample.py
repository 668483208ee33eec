"""Sampled queries keep to the protocol, and the same seed gives the same ones."""

import numpy as np
import pytest
from click.testing import CliRunner

from lmpnn_kge.cli import main
from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.rules import Rules
from lmpnn_kge.queries.sample import (
    Request,
    Sampler,
    betae_preset,
    one_hop,
    sample_all,
    sample_store,
)
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.patterns import BETAE, EFO1, named_patterns

from ..conftest import TOY

NAMES = [*BETAE, *EFO1]
PATTERNS = named_patterns()


@pytest.fixture(scope="module")
def toy():
    return KnowledgeGraph.open(TOY / "dataset")


@pytest.fixture(scope="module")
def sampled(toy):
    requests = [
        Request(split, name, PATTERNS[name], 20)
        for split in ("train", "valid", "test")
        for name in NAMES
    ]
    return sample_all(toy, requests, seed=1)


def answers_of(graph, queries, row, split):
    """One query by itself, as a check of the bulk."""
    pattern = queries.pattern
    return set(
        graph.database.answer(
            pattern, queries.constants[row : row + 1], queries.relations[row : row + 1], split
        )
        .of(0)
        .tolist()
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("split", "observed"), [("valid", "train"), ("test", "valid")])
def test_hard_answers_need_a_missing_edge_and_easy_ones_do_not(toy, sampled, name, split, observed):
    queries = sampled[split][name]
    for row in range(len(queries)):
        easy, hard = (set(a.of(row).tolist()) for a in (queries.easy, queries.hard))
        full = answers_of(toy, queries, row, split)
        seen = answers_of(toy, queries, row, observed)
        assert hard
        assert len(full) <= 100
        assert (easy, hard) == (full & seen, full - seen)


@pytest.mark.parametrize("name", NAMES)
def test_training_queries_are_answered_on_the_training_graph(toy, sampled, name):
    queries = sampled["train"][name]
    assert len(queries.hard.values) == 0
    for row in range(len(queries)):
        assert set(queries.easy.of(row).tolist()) == answers_of(toy, queries, row, "train") != set()


@pytest.mark.parametrize("name", ["1p", "2p", "2i", "pi", "2u", "2in", "inp", "pni", "3c", "2il"])
def test_queries_are_found_and_distinct(sampled, name):
    for split in ("train", "test"):
        queries = sampled[split][name]
        rows = np.concatenate([queries.constants, queries.relations], axis=1)
        assert len(np.unique(rows, axis=0)) == len(rows) > 0


@pytest.mark.parametrize(("name", "positive", "kept"), [("2in", "1p", [0]), ("inp", "2p", [0, 2])])
def test_a_negation_changes_the_answers(toy, sampled, name, positive, kept):
    queries = sampled["test"][name]
    loose = toy.database.answer(
        PATTERNS[positive], queries.constants[:, :1], queries.relations[:, kept]
    )
    for row in range(len(queries)):
        assert answers_of(toy, queries, row, "test") < set(loose.of(row).tolist())


def test_the_same_seed_gives_the_same_queries_whatever_the_threads(toy):
    request = Request("test", "pi", PATTERNS["pi"], 15)
    one, two, other = (Sampler(toy, seed).sample(request) for seed in (3, 3, 4))
    toy.database.engine.connection.execute("SET threads = 1")
    single = Sampler(toy, 3).sample(request)
    for again in (two, single):
        assert np.array_equal(one.constants, again.constants)
        assert np.array_equal(one.hard.values, again.hard.values)
    assert not np.array_equal(one.constants, other.constants)


def test_a_pattern_with_too_few_queries_gives_all_that_were_found(toy):
    request = Request("test", "1p", PATTERNS["1p"], 10_000)
    assert 0 < len(Sampler(toy).sample(request)) < 10_000


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_request_for_none_is_answered_without_a_database(toy, split, monkeypatch):
    monkeypatch.setattr(KnowledgeGraph, "database", None)
    queries = Sampler(toy).sample(Request(split, "pin", PATTERNS["pin"], 0))
    assert len(queries) == 0
    assert queries.constants.shape == (0, 2)
    assert queries.relations.shape == (0, 3)
    assert queries.constants.dtype == queries.relations.dtype == np.int32
    assert (queries.hard.costs is None) == (split == "train")


def test_no_requests_are_none_and_not_the_preset(toy, tmp_path):
    with pytest.raises(QueryError, match="nothing was written"):
        sample_store(toy, tmp_path / "store", [])
    assert not (tmp_path / "store").exists()
    assert betae_preset(toy, {}) == []


def test_no_queries_joined_with_some_are_those(sampled):
    some = sampled["test"]["2p"]
    joined = Queries.joined([Queries.none(some.pattern), some])
    assert np.array_equal(joined.constants, some.constants)
    assert np.array_equal(joined.hard.values, some.hard.values)
    assert joined.relations.dtype == some.relations.dtype


def test_every_edge_asks_for_its_tail_and_for_its_head(toy):
    triples, _ = toy.edges
    heads, relations = np.divmod(one_hop(triples, toy.num_relations), 2 * toy.num_relations)
    forward = {(s, p) for s, p, _ in triples.tolist()}
    backward = {(o, p + toy.num_relations) for _, p, o in triples.tolist()}
    found = list(zip(heads.tolist(), relations.tolist(), strict=True))
    assert set(found) == forward | backward
    assert len(found) == len(set(found))


def test_the_preset_has_the_composition_of_betae(toy):
    requests = {(r.split, r.name): r.count for r in betae_preset(toy)}
    train = {name for split, name in requests if split == "train"}
    assert train == {"1p", "2p", "3p", "2i", "3i", "2in", "3in", "inp", "pin", "pni"}
    assert {name for split, name in requests if split == "test"} == set(BETAE)
    assert requests["train", "1p"] is None
    assert requests["train", "2in"] == requests["train", "2p"] // 10
    whole = Sampler(toy).sample(Request("train", "1p", PATTERNS["1p"], None))
    assert len(whole) == requests["train", "2p"]


def test_without_the_rule_zero_shot_all_types_are_trained_on_and_the_others_stay_the_same(toy):
    counts = {(r.split, r.name): r.count for r in betae_preset(toy)}
    more = {(r.split, r.name): r.count for r in betae_preset(toy, rules=Rules(zero_shot=False))}
    assert more.keys() - counts.keys() == {("train", name) for name in ("pi", "ip", "2u", "up")}
    assert more["train", "pi"] == counts["train", "2in"]
    assert {request: more[request] for request in counts} == counts


def sample(tmp_path, *arguments, code=0):
    command = ["sample", "--dataset", str(TOY / "dataset"), "--out", str(tmp_path / "store")]
    result = CliRunner().invoke(main, [*command, *arguments])
    assert result.exit_code == code, result.output
    return result


def test_patterns_of_the_user_are_sampled_beside_the_preset(tmp_path):
    (tmp_path / "mine.yaml").write_text("triangle: r1(s1,e1)&r2(e1,f)&r3(s1,f)\n")
    sample(tmp_path, "--patterns", str(tmp_path / "mine.yaml"), "--count", "3")
    found = QueryStore.open(tmp_path / "store").splits["train"]
    assert len(found["triangle"]) == 3
    assert len(found["2p"]) == 3


def test_a_pattern_that_only_a_negation_connects_to_its_answer_is_sampled(tmp_path):
    (tmp_path / "mine.yaml").write_text("odd: '!r1(e1,f)&r2(s1,e1)'\n")
    arguments = ["--patterns", str(tmp_path / "mine.yaml"), "--types", "odd", "--count", "2"]
    sample(tmp_path, *arguments)
    assert len(QueryStore.open(tmp_path / "store").splits["train"]["odd"]) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--types", "2q"], "there is no type '2q'; choose from: 1p"),
        (["--types", " , "], "--types is empty; choose from: 1p"),
        (["--types", "loop", "--patterns"], "nothing was written"),
        (["--types", "apart", "--patterns"], "its atoms alone do not connect it to f"),
    ],
)
def test_mistakes_write_nothing(tmp_path, arguments, words):
    (tmp_path / "mine.yaml").write_text("loop: r1(f,f)\napart: r1(s1,e1)&e1=f\n")
    if arguments[-1] == "--patterns":
        arguments = [*arguments, str(tmp_path / "mine.yaml")]
    assert words in sample(tmp_path, *arguments, "--count", "2", code=2).stderr
    assert not (tmp_path / "store").exists()


def test_a_folder_of_other_files_is_refused_before_any_work(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "thesis.tex").write_text("precious")
    assert "holds something else" in sample(tmp_path, code=2).stderr
    assert (tmp_path / "store" / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("empty", ["train", "valid"])
def test_a_graph_with_an_empty_split_is_sampled_only_if_train_has_triples(tmp_path, empty):
    folder = tmp_path / "graph"
    folder.mkdir()
    texts = {"train": "a\tr\tb\nb\tr\tc\n", "valid": "a\tr\tc\n", "test": "c\tr\td\n"}
    for split, text in texts.items():
        (folder / f"{split}.txt").write_text("" if split == empty else text)
    command = ["sample", "--dataset", str(folder), "--out", str(tmp_path / "store")]
    result = CliRunner().invoke(main, [*command, "--types", "1p,2p", "--count", "2"])
    if empty == "train":
        assert result.exit_code == 2
        assert "has no train triples to sample from" in result.stderr
    else:
        assert result.exit_code == 0, result.output
        assert "valid 1p: only 0 of 2 were found" in result.stderr
        assert len(QueryStore.open(tmp_path / "store").splits["test"]["1p"]) == 2
