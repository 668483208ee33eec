"""Query stores in the rows of another table, joined by name."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.renumber import renumber_store
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.patterns import BETAE

from .tiny_stores import ENTITIES, RELATIONS, content, queries, small, stores


def test_a_store_renumbered_by_its_own_names_is_itself():
    store = small()
    joined, dropped = renumber_store(store, Vocabulary(list(ENTITIES), list(RELATIONS)))
    assert joined is store
    assert not dropped
    assert str(dropped) == "all names match"


def test_rows_are_joined_by_name_and_inverses_and_costs_stay_with_their_rows():
    joined, dropped = renumber_store(
        small(), Vocabulary(["x", *ENTITIES[::-1]], ["new", *RELATIONS[::-1]])
    )
    assert not dropped
    assert (dropped.queries, dropped.answers) == (0, 0)
    assert joined.vocabulary.entity_ids == ["x", *ENTITIES[::-1]]
    train = joined.splits["train"]["1p"]
    assert train.constants.tolist() == [[4], [3]]
    assert train.relations.tolist() == [[2], [4]]
    assert train.easy.of(0).tolist() == [2, 3]
    hard = joined.splits["test"]["2p"].hard
    assert (hard.values.tolist(), hard.costs.tolist()) == ([3, 4], [1, 0])


def test_queries_and_answers_with_unknown_names_are_dropped_and_counted():
    joined, dropped = renumber_store(small(), Vocabulary(["a", "c", "d"], RELATIONS))
    assert dropped
    assert (dropped.entities, dropped.relations) == (["b"], [])
    assert (dropped.queries, dropped.answers) == (1, 2)
    assert str(dropped).startswith("unknown entities: 1 ('b'); dropped: 1 queries and 2 answers")
    assert len(joined.splits["train"]["1p"]) == 1
    assert joined.splits["train"]["1p"].easy.values.tolist() == [1]
    assert joined.splits["test"]["2p"].hard.values.tolist() == [0]
    joined, dropped = renumber_store(small(), Vocabulary(ENTITIES, ["has part"]))
    assert (dropped.entities, dropped.relations) == ([], ["likes"])
    assert str(dropped).startswith("unknown relations: 1 ('likes'); dropped: 2 queries")
    assert [len(q) for found in joined.splits.values() for q in found.values()] == [1, 0, 1]


def test_a_query_that_loses_its_hard_answers_is_dropped_even_if_easy_ones_remain():
    found = queries(BETAE["1p"], [[0], [0]], [[0], [1]], [[1], [1]], [[2], [3]])
    store = QueryStore("tiny", Vocabulary(ENTITIES, RELATIONS), {"test": {"1p": found}})
    joined, dropped = renumber_store(store, Vocabulary(["a", "b", "d"], RELATIONS))
    assert joined.splits["test"]["1p"].relations.tolist() == [[1]]
    assert dropped.queries == 1


@given(stores(), st.permutations(ENTITIES), st.permutations(RELATIONS))
@settings(max_examples=40, deadline=None)
def test_renumbering_there_and_back_keeps_every_answered_query(store, entities, relations):
    there, _ = renumber_store(store, Vocabulary(entities, relations))
    back, _ = renumber_store(there, Vocabulary(ENTITIES, RELATIONS))
    again, _ = renumber_store(back, Vocabulary(entities, relations))
    assert content(again) == content(there)
    for split, patterns in there.splits.items():
        for name, found in patterns.items():
            for row in range(len(found)):
                text = str(there.question(found, row))
                assert text == str(back.question(back.splits[split][name], row))
