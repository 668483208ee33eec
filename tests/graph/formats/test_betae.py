"""The graph of a BetaE folder, sound and broken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge import DatasetError, KnowledgeGraph
from lmpnn_kge.graph.formats import betae
from lmpnn_kge.graph.formats.betae import IDS, from_betae, to_betae

from .betae_files import ENTITIES, dump, graph_folder


@pytest.fixture
def folder(tmp_path):
    return graph_folder(tmp_path / "betae")


@pytest.fixture
def unnamed(folder):
    """A folder that only its queries mark as one of BetaE."""
    for name in IDS:
        (folder / f"{name}.pkl").unlink()
    dump(folder / "train-queries.pkl", {})
    return folder


@pytest.mark.parametrize("file", [*IDS, "train-queries"])
def test_a_folder_is_recognised_by_a_pickle(tmp_path, file):
    assert not betae.recognises(tmp_path)
    dump(tmp_path / f"{file}.pkl", {})
    assert betae.recognises(tmp_path)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(0, 0), (1, 2), (2, 4), (3, 1), (4, 3), (5, 5)], ids=str
)
def test_three_relations_and_their_inverses_have_these_numbers(ours, theirs):
    assert to_betae(np.array([ours]), 3) == theirs
    assert from_betae(np.array([theirs]), 3) == ours


@given(st.integers(1, 10**6), st.data())
def test_the_two_numberings_are_inverse_to_each_other(count, data):
    number = np.array([data.draw(st.integers(0, 2 * count - 1))])
    assert from_betae(to_betae(number, count), count) == number
    assert to_betae(from_betae(number, count), count) == number
    assert (from_betae(number, count) < count) == (number % 2 == 0)


def test_the_graph_has_each_triple_once_and_relations_without_signs(folder):
    graph = KnowledgeGraph.open(folder)
    assert (graph.name, graph.entity_ids, graph.relation_ids) == ("betae", ENTITIES, ["/x/y", "z"])
    assert graph.triples("train").tolist() == [[0, 0, 1], [3, 1, 2]]
    assert graph.triples("valid").tolist() == [[1, 0, 1]]
    assert graph.triples("test").shape == (0, 3)


@pytest.mark.parametrize("kept", ["id2", "2id"])
def test_one_table_of_names_is_enough(folder, kept):
    for role in ("ent", "rel"):
        (folder / (f"{role}2id.pkl" if kept == "id2" else f"id2{role}.pkl")).unlink()
    graph = KnowledgeGraph.open(folder)
    assert (graph.entity_ids, graph.relation_ids) == (ENTITIES, ["/x/y", "z"])


TRIPLES = {
    "missing": (None, "train.txt is missing"),
    "names": ("a\tb\tc\n", "must have a head, relation and tail"),
    "two numbers": ("1\t2\n", "lines have 2 numbers"),
    "a triple without its inverse": (
        "0\t0\t1\n1\t1\t0\n3\t2\t0\n",
        "1 triples lack their inverse.*head 3",
    ),
    "the inverse of another triple": ("0\t0\t1\n1\t3\t0\n", "2 triples lack their inverse"),
    "a large number": ("0\t0\t9\n9\t1\t0\n", "2 triples are not over 4 entities and 4 relations"),
}


@pytest.mark.parametrize("name", TRIPLES)
def test_broken_triples_are_refused_with_their_number(folder, name):
    text, words = TRIPLES[name]
    (folder / "train.txt").unlink()
    if text is not None:
        (folder / "train.txt").write_text(text)
    with pytest.raises(DatasetError, match=words):
        KnowledgeGraph.open(folder)


def test_relations_must_be_named_in_pairs(folder):
    (folder / "rel2id.pkl").unlink()
    dump(folder / "id2rel.pkl", dict(enumerate(["+a", "-a", "+b", "-c"])))
    with pytest.raises(DatasetError, match=r"unlike 1 \('-c'\)"):
        KnowledgeGraph.open(folder)


def test_without_names_the_numbers_of_stats_are_the_names(unnamed):
    (unnamed / "stats.txt").write_text("numentity: 5\nnumrelations: 6\n")
    graph = KnowledgeGraph.open(unnamed)
    assert (graph.entity_ids, graph.relation_ids) == (["0", "1", "2", "3", "4"], ["0", "2", "4"])


def test_without_names_and_stats_the_numbers_of_the_triples_are_the_names(unnamed):
    (unnamed / "stats.txt").unlink()
    graph = KnowledgeGraph.open(unnamed)
    assert (graph.entity_ids, graph.relation_ids) == (["0", "1", "2", "3"], ["0", "2"])


@pytest.mark.parametrize("text", ["", "numentity: 4", "numentity: x\nnumrelations: 4"])
def test_unreadable_stats_are_refused_only_if_they_are_needed(unnamed, text):
    (unnamed / "stats.txt").write_text(text)
    with pytest.raises(DatasetError, match=r"stats.txt must read 'numentity: E'"):
        KnowledgeGraph.open(unnamed)
    dump(unnamed / "id2ent.pkl", dict(enumerate(ENTITIES)))
    dump(unnamed / "id2rel.pkl", dict(enumerate(["+r", "-r", "+s", "-s"])))
    assert KnowledgeGraph.open(unnamed).relation_ids == ["r", "s"]


@pytest.mark.parametrize("counts", [(999_999_999, 4), (4, 10**12)])
def test_stats_that_claim_more_than_the_triples_can_need_are_refused(unnamed, counts):
    text = f"numentity: {counts[0]}\nnumrelations: {counts[1]}\n"
    (unnamed / "stats.txt").write_text(text)
    with pytest.raises(DatasetError, match=r"stats\.txt has .* but there are only 8 triples"):
        KnowledgeGraph.open(unnamed)


def test_triples_with_numbers_far_beyond_their_count_are_refused(unnamed):
    (unnamed / "stats.txt").unlink()
    (unnamed / "test.txt").write_text("999999999 0 1\n1 1 999999999\n")
    with pytest.raises(DatasetError, match="has 1,000,000,000 entities and 4 relations, but there"):
        KnowledgeGraph.open(unnamed)
