"""Edits of a question: what a person does in its drawing is what its text says afterwards."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query import edit
from lmpnn_kge.query.drawing.diagram import Diagram
from lmpnn_kge.query.formula import Or
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.sparql.conjuncts import exact_formula

from ..formulas import brute_force, formulas, graphs

BORDERS = "borders(Germany, ?)"
PATH = "borders(France, ?x) & borders(?x, ?) & continent(?, Europe)"
NO_PATH = "continent(?, Europe) & !(borders(France, ?x) & borders(?x, ?))"

small = formulas(st.sampled_from(["e0", "e1", "e2", "e3"]), st.sampled_from(["r0", "r1"]))


def read(formula):
    """A random formula as a question, with its disjuncts."""
    try:
        return str(formula), normalise(parse(str(formula)))
    except QueryError:
        assume(False)


def test_a_question_is_built_from_nothing():
    text = edit.add_edge("", 0, "borders", "Germany", 0)
    assert text == BORDERS
    text = edit.add_edge(text, 0, "currency", 0, None)
    assert text == "borders(Germany, ?) & currency(?, ?x)"
    assert edit.add_edge(text, 0, "=", 0, "Peru", negated=True).endswith("& ? != Peru")
    assert edit.add_edge(text, 1, "speaks", 0, "French").endswith("| speaks(?, French)")


def test_a_new_variable_has_a_name_of_its_own():
    assert edit.add_edge(PATH, 0, "near", 0, None).endswith("near(?, ?y)")
    assert edit.add_edge("", 0, "near", None, None) == ""  # nothing that asks for ?


def test_names_are_written_as_in_a_formula():
    text = edit.add_edge("", 0, '"is near"', '"South Sudan"', 0)
    assert text == '"is near"("South Sudan", ?)'


def test_a_negated_edge_to_a_new_variable_says_that_there_is_none():
    text = edit.negate_edge("borders(Germany, ?) & currency(?, ?x)", 0, 1)
    assert text == "borders(Germany, ?) & !currency(?, ?x)"
    assert edit.allow_edge(text, 0, 1) == "borders(Germany, ?) & currency(?, ?x)"


def test_edges_become_a_group_that_is_denied_and_back():
    assert edit.deny_edges(PATH, 0, [0, 1]) == NO_PATH
    allowed = edit.allow_edge(NO_PATH, 0, 1)
    assert set(allowed.split(" & ")) == set(PATH.split(" & "))


def test_an_edge_at_a_variable_of_a_group_belongs_to_the_group():
    node = next(
        number
        for number, place in enumerate(Diagram.of(normalise(parse(NO_PATH))[0]).places)
        if place.frame is not None and str(place.term).endswith("x")
    )
    text = edit.add_edge(NO_PATH, 0, "near", node, "Spain")
    assert text == (
        "continent(?, Europe) & !(borders(France, ?x) & borders(?x, ?) & near(?x, Spain))"
    )


def test_removing_an_edge_removes_what_hung_on_it():
    assert edit.remove_edge(PATH, 0, 1) == "continent(?, Europe)"
    assert edit.remove_edge(BORDERS, 0, 0) == ""


def test_one_box_is_replaced_and_a_variable_everywhere():
    twice = "borders(Germany, ?) & near(Germany, ?)"
    assert edit.replace_node(twice, 0, 1, "Peru") == "borders(Peru, ?) & near(Germany, ?)"
    assert edit.replace_node(PATH, 0, 1, "Spain") == (
        "borders(France, Spain) & borders(Spain, ?) & continent(?, Europe)"
    )


def test_a_variable_of_a_denied_group_is_replaced():
    text = "friend_of(?x, ?) & !lives_in(?x, ?y)"
    assert edit.replace_node(text, 0, 2, "Dunmere") == "friend_of(?x, ?) & !lives_in(?x, Dunmere)"


def test_asking_for_a_variable_makes_the_old_answer_one():
    assert edit.ask_for_node(PATH, 0, 1) == (
        "borders(France, ?) & borders(?, ?y) & continent(?y, Europe)"
    )
    with pytest.raises(QueryError, match="only a variable"):
        edit.ask_for_node(BORDERS, 0, 1)


def test_a_part_of_a_disjunction_is_removed():
    text = f"{BORDERS} | speaks(?, French)"
    assert edit.remove_disjunct(text, 0) == "speaks(?, French)"
    assert edit.remove_disjunct(BORDERS, 0) == ""


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: edit.negate_edge(BORDERS, 0, 7),
        lambda: edit.negate_edge(BORDERS, 3, 0),
        lambda: edit.replace_node(BORDERS, 0, -1, "Peru"),
        lambda: edit.replace_node(BORDERS, 0, 0, "Peru"),
        lambda: edit.replace_node(BORDERS, 0, 1, "two names"),
        lambda: edit.add_edge(BORDERS, 0, "?x", 0, "Peru"),
        lambda: edit.add_edge(BORDERS, 5, "near", 0, "Peru"),
        lambda: edit.deny_edges(NO_PATH, 0, [1]),
        lambda: edit.allow_edge(BORDERS, 0, 0),
        lambda: edit.remove_edge("borders(", 0, 0),
    ],
)
def test_an_edit_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(QueryError):
        wrong()


@settings(max_examples=150, deadline=None)
@given(small, graphs)
def test_disjuncts_as_formulas_mean_what_the_formula_means(formula, triples):
    _, disjuncts = read(formula)
    texts = [str(exact_formula(disjunct)) for disjunct in disjuncts]
    parts = tuple(parse(text) for text in texts)
    joined = Or(parts) if len(parts) > 1 else parts[0]
    assert brute_force(joined, triples) == brute_force(parse(str(formula)), triples)


@settings(max_examples=150, deadline=None)
@given(small, st.data())
def test_every_edit_makes_a_question_that_can_be_read_or_nothing(formula, data):
    text, disjuncts = read(formula)
    number = data.draw(st.integers(0, len(disjuncts) - 1))
    diagram = Diagram.of(disjuncts[number])
    edge = data.draw(st.integers(0, len(diagram.links) - 1))
    node = data.draw(st.integers(0, len(diagram.places) - 1))
    for change in (
        lambda: edit.add_edge(text, number, "r0", node, None),
        lambda: edit.add_edge(text, number, "r0", "e0", node, negated=True),
        lambda: edit.negate_edge(text, number, edge),
        lambda: edit.remove_edge(text, number, edge),
        lambda: edit.replace_node(text, number, node, "e1"),
        lambda: edit.replace_node(text, number, node),
        lambda: edit.deny_edges(text, number, [edge]),
        lambda: edit.allow_edge(text, number, edge),
        lambda: edit.remove_disjunct(text, number),
    ):
        try:
            result = change()
        except QueryError:
            continue
        assert not result or normalise(parse(result))
