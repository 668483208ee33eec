"""Formulas that ask for several entities at once: ?1, ?2, …"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.draw import draw
from lmpnn_kge.query.edit import add_edge
from lmpnn_kge.query.formula import FREE, Variable, free_variables
from lmpnn_kge.query.graph import query_graphs
from lmpnn_kge.query.normal_form import asking_only, normalise
from lmpnn_kge.query.parser import parse, parse_any
from lmpnn_kge.query.patterns import EFOK, named_patterns, parse_pattern
from lmpnn_kge.query.sparql.write import to_sparql

from ..formulas import names, numbered, tuple_formulas

ONE, TWO = numbered(2)


@given(formula=tuple_formulas(names, names, 2) | tuple_formulas(names, names, 3))
@settings(max_examples=200, deadline=None)
def test_printing_and_parsing_again_gives_the_same_formula(formula):
    assert parse_any(str(formula)) == formula


def test_numbered_variables_are_asked_for_and_named_ones_are_not():
    formula = parse("r(a, ?2) & s(?2, ?x) & t(?x, ?1) & ?1 != ?2")
    assert free_variables(formula) == (ONE, TWO)
    (conjunct,) = normalise(formula)
    assert (conjunct.free, conjunct.bound) == ((ONE, TWO), (Variable("x"),))


def test_ten_variables_are_in_the_order_of_their_numbers():
    text = " & ".join(f"r(?{n}, ?{n + 1})" for n in range(1, 10))
    assert [v.name for v in free_variables(parse(text))] == [str(n) for n in range(1, 11)]


def test_a_sole_numbered_variable_is_the_free_one():
    assert parse("r(a, ?1)") == parse("r(a, ?)")
    assert parse_pattern("r1(s1,f1)") == parse_pattern("r1(s1,f)")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("r(?, ?1)", "has both ? and ?1; to ask for several entities, number all of them"),
        ("r(?1, ?3)", "asks for ?3, but not for ?2; number what is asked for from ?1 on"),
        ("r(?2, a)", "asks for ?2, but not for ?1"),
        ("r(?01, a)", "asks for ?01, but not for ?1"),
        ("r(?x, a)", "asks for nothing"),
        (f"r(?{'9' * 5000}, a)", "but not for ?1"),
    ],
)
def test_wrong_numbers_are_refused(text, problem):
    with pytest.raises(QueryError, match=re.escape(problem)):
        parse(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("r(a, ?1) & s(b, ?2)", "is not connected to ?1: 'b', ?2"),
        ("r(?1, ?2) | s(a, ?1)", "does not have ?2; each part of a disjunction must say something"),
    ],
)
def test_parts_that_do_not_speak_of_everything_are_refused(text, problem):
    with pytest.raises(QueryError, match=re.escape(problem)):
        normalise(parse(text))


def test_the_types_are_printed_in_the_form_of_the_literature():
    for name, pattern in named_patterns().items():
        if name in EFOK:
            assert str(pattern) == EFOK[name]
            assert len(pattern.free) == int(name[0])
            assert pattern.disjuncts == normalise(pattern.formula)


def test_about_one_variable_the_others_are_some_entities():
    pattern = parse_pattern("r1(s1,f1)&!r2(f1,f2)").about(TWO)
    (disjunct,) = pattern.disjuncts
    assert pattern.free == disjunct.free == (FREE,)
    assert disjunct.bound == (ONE,)
    assert disjunct == asking_only(*normalise(pattern.formula), TWO)


def test_the_depth_is_the_largest_of_all_free_variables():
    formula = parse_pattern("r1(s1,f1)&r2(f1,f2)").formula
    for focus in (ONE, TWO):
        (graph,) = query_graphs(formula, focus=focus)
        assert (graph.nodes[0], graph.free, graph.depth) == (focus, 2, 2)


def test_every_free_variable_is_marked_in_a_picture():
    picture = draw(parse("r(a, ?1) & s(?1, ?2) & t(?2, ?x)"))
    assert picture.count('class="free"') == 2
    assert picture.count('class="existential"') == 1


def test_sparql_selects_all_of_them():
    assert "SELECT DISTINCT ?answer1 ?answer2 WHERE" in to_sparql(parse("r(?2, ?1)"))


def test_clicking_does_not_change_such_a_question():
    with pytest.raises(QueryError, match="is changed in its text only"):
        add_edge("r(?1, ?2)", 0, 0, "s", None)


@given(text=st.text(alphabet="?12&r(), x!=", max_size=20))
@settings(max_examples=500, deadline=None)
def test_any_text_is_a_formula_that_prints_or_a_query_error(text):
    try:
        formula = parse(text)
    except QueryError:
        return
    assert parse(str(formula)) == formula
