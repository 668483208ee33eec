"""Names of rows: joined by id, found by id or label, kept as JSON."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.vocabulary import FEW, Vocabulary, name_rows
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern

ENTITIES = ["e0", "e1", "e2", "e3"]
RELATIONS = ["r0", "r1"]
LABELLED = Vocabulary(["m1", "m2", "m3"], ["r"], ["Paris", "Paris", "Rome"], ["likes"])

ids = st.lists(st.text(max_size=3), unique=True, max_size=6)


def labels_of(names):
    row = st.none() | st.text(max_size=3)
    return st.none() | st.lists(row, min_size=len(names), max_size=len(names))


@st.composite
def vocabularies(draw):
    entities, relations = draw(ids), draw(ids)
    labels = draw(labels_of(entities)), draw(labels_of(relations))
    return Vocabulary(entities, relations, *labels)


def resolve(vocabulary, text):
    return vocabulary.resolve(Pattern(parse(text)), text)


def look_up(text, seen, vocabulary=LABELLED):
    return vocabulary.look_up(Pattern(parse(text)), text, lambda *pair: pair in seen)


def test_rows_in_another_table_are_joined_by_id_and_missing_names_give_minus_one():
    table = Vocabulary(["e3", "x", "e0"], ["r1", "s"])
    rows = Vocabulary(ENTITIES, RELATIONS).rows_in(table)
    assert rows.entities.tolist() == [2, -1, -1, 0]
    assert rows.relations.tolist() == [-1, 0]


def test_rows_are_joined_by_id_even_if_labels_say_otherwise():
    table = Vocabulary(["m2", "m1"], ["r"], ["Rome", "Rome"])
    assert LABELLED.rows_in(table).entities.tolist() == [1, 0, -1]


@given(ids, ids)
def test_a_row_in_another_table_has_the_same_id_there(ours, theirs):
    rows = Vocabulary(ours, theirs).rows_in(Vocabulary(theirs, ours))
    for numbers, names, table in ((rows.entities, ours, theirs), (rows.relations, theirs, ours)):
        assert numbers.dtype == np.int64
        assert [None if row < 0 else table[row] for row in numbers] == [
            name if name in table else None for name in names
        ]


def test_triples_are_renumbered_in_the_rows_of_another_table():
    table = Vocabulary(["x", *ENTITIES[::-1]], RELATIONS[::-1])
    rows = Vocabulary(ENTITIES, RELATIONS).rows_in(table)
    assert rows.of(np.array([[0, 0, 1], [3, 1, 3]])).tolist() == [[4, 1, 3], [1, 0, 1]]
    assert rows.of(np.zeros((0, 3), np.int64)).shape == (0, 3)


def test_two_vocabularies_have_the_same_ids_only_in_the_same_order():
    names = Vocabulary(ENTITIES, RELATIONS)
    assert names.has_ids_of(Vocabulary(list(ENTITIES), list(RELATIONS), [None] * 4))
    assert not names.has_ids_of(Vocabulary(ENTITIES[::-1], RELATIONS))
    assert not names.has_ids_of(Vocabulary(ENTITIES, RELATIONS[::-1]))
    assert not names.has_ids_of(Vocabulary(ENTITIES[:-1], RELATIONS))
    assert not names.has_ids_of(Vocabulary(ENTITIES, []))


def test_labels_of_another_vocabulary_are_taken_over_by_id():
    labelled = Vocabulary(["x", "m3", "m1"], ["s", "r"]).labelled_by(LABELLED)
    assert (labelled.entity_ids, labelled.relation_ids) == (["x", "m3", "m1"], ["s", "r"])
    assert labelled.entity_labels == [None, "Rome", "Paris"]
    assert labelled.relation_labels == [None, "likes"]


def test_a_vocabulary_without_labels_gives_none():
    unlabelled = LABELLED.labelled_by(Vocabulary(ENTITIES, RELATIONS))
    assert (unlabelled.entity_labels, unlabelled.relation_labels) == (None, None)
    assert unlabelled.has_ids_of(LABELLED)


def test_a_label_is_the_id_if_there_is_none():
    assert [LABELLED.label(row) for row in range(3)] == ["Paris", "Paris", "Rome"]
    partly = Vocabulary(["m1", "m2"], ["r"], [None, "Rome"])
    assert [partly.label(row) for row in range(2)] == ["m1", "Rome"]
    assert Vocabulary(["m1"], ["r"]).label(0) == "m1"


def test_names_are_looked_up_by_id_and_then_by_label():
    names = Vocabulary(["a", "b", "c"], ["r", "s"], ["b", "c", "Bee"], ["s", "sings"])
    assert [names.entity(name) for name in ("a", "b", "c", "Bee")] == [0, 1, 2, 2]
    assert [names.relation(name) for name in ("r", "s", "sings")] == [0, 1, 1]


def test_an_ambiguous_label_lists_the_candidates():
    assert resolve(LABELLED, "r(m2, ?) & likes(Rome, ?)")[0].tolist() == [1, 2]
    message = "'Paris' is the label of 2 entity ids: m1, m2; write the id you mean (column 3)"
    with pytest.raises(QueryError, match=re.escape(message)):
        resolve(LABELLED, "r(Paris, ?)")


@pytest.mark.parametrize(
    ("seen", "row"),
    [
        ([(1, 0)], 1),  # m2 is the head of an edge of r
        ([(1, 0), (0, 1)], 1),  # m1 is only the tail of one
        ([(2, 0), (0, 0)], 0),
    ],
)
def test_an_ambiguous_label_means_the_one_that_fits_its_place(seen, row):
    names = look_up("r(Paris, ?)", seen)
    assert names.constants.tolist() == [row]
    (note,) = names.notes
    assert f"'Paris' is the label of 2 entities; m{row + 1} was taken" in note
    assert look_up("r(m1, ?)", seen).notes == ()


def test_a_label_must_fit_everywhere_in_the_question():
    question = "r(Paris, ?) & r(?, Paris)"
    assert look_up(question, [(0, 0), (0, 1), (1, 0)]).constants.tolist() == [0]
    with pytest.raises(QueryError, match="label of 2 entity ids: m1, m2;"):
        look_up(question, [(0, 0), (1, 1)])


def test_an_ambiguous_label_lists_candidates_that_fit_first():
    three = Vocabulary(["m1", "m2", "m3"], ["r"], ["Paris"] * 3)
    with pytest.raises(QueryError, match="label of 3 entity ids: m2, m3, m1;"):
        look_up("r(Paris, ?)", [(1, 0), (2, 0)], three)
    with pytest.raises(QueryError, match="label of 3 entity ids: m1, m2, m3;"):
        look_up("r(?, ?) & ? = Paris", [(1, 0)], three)


def test_a_question_is_resolved_in_the_order_of_its_pattern():
    names = Vocabulary(ENTITIES, RELATIONS)
    constants, relations = resolve(names, "r1(e3, ?x) & r0(?x, ?) & !r1(e0, ?) & ? != e3")
    assert (constants.tolist(), relations.tolist()) == ([3, 0], [1, 0])


def test_an_error_about_an_unknown_name_points_at_it():
    names = Vocabulary(ENTITIES, RELATIONS)
    with pytest.raises(
        QueryError, match=r"no entity 'e9'; choose from: e0, e1, e2, e3 \(column 4\)"
    ) as error:
        resolve(names, "r0(e9, ?)")
    assert error.value.excerpt == "r0(e9, ?)\n   ^"
    with pytest.raises(QueryError, match=r"no relation 'r7'.*\(column 12\)"):
        resolve(names, "r0(e0, ?) &r7(?, e0)")


def test_an_error_about_an_unknown_name_never_lists_many():
    names = Vocabulary([f"entity {row}" for row in range(FEW + 1)], RELATIONS)
    with pytest.raises(QueryError, match=r"no entity '7'$"):
        names.entity("7")
    with pytest.raises(QueryError, match=r"no entity 'entity 99'; did you mean 'entity 9'"):
        names.entity("entity 99")


@given(vocabularies())
def test_a_vocabulary_is_read_from_json_as_it_was_written(vocabulary):
    content = json.loads(json.dumps(vocabulary.to_json()))
    assert vars(Vocabulary.from_json(content)) == {**content, "entity_types": None}


def test_the_keys_of_the_json_are_those_of_files_written_earlier():
    assert LABELLED.to_json() == {
        "entity_ids": ["m1", "m2", "m3"],
        "relation_ids": ["r"],
        "entity_labels": ["Paris", "Paris", "Rome"],
        "relation_labels": ["likes"],
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entity_ids": ["a", "a", "b"]}, r"these repeat: 1 \('a'\)"),
        ({"relation_ids": ["r", "r"]}, r"these repeat: 1 \('r'\)"),
        ({"entity_ids": [1, 2, 3]}, "ids must be strings"),
        ({"relation_ids": [["r"]]}, "ids must be strings"),
        ({"entity_labels": ["Paris"]}, "3 entity ids have 1 labels"),
        ({"relation_labels": []}, "1 relation ids have 0 labels"),
        ({"entity_ids": "abc"}, "entity ids are not a list of names"),
        ({"entity_ids": [None, "a", "b"]}, "entity ids are not a list of names"),
        ({"entity_labels": [1, 2, 3]}, "entity labels are not a list of names"),
        ({"other": []}, "it must have the keys entity_ids"),
    ],
    ids=str,
)
def test_json_that_is_not_a_vocabulary_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.from_json(LABELLED.to_json() | changes)


def test_rows_without_an_id_become_blank_nodes():
    assert name_rows(["a", None, "b"]) == ["a", "_:1", "b"]
    with pytest.raises(ValueError, match=r"these repeat: 1 \('_:1'\)"):
        name_rows(["_:1", None])


@given(vocabularies())
def test_a_repr_is_one_line(vocabulary):
    assert len(repr(vocabulary).splitlines()) == 1


def test_a_repr_has_the_sizes_and_not_the_names():
    names = Vocabulary([str(row) for row in range(2500)], ["r\n"])
    assert repr(names) == "Vocabulary(2,500 entities, 1 relations)"
