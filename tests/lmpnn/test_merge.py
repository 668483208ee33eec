"""Disjunctions read as conjunctions, as the paper answers them; and variables that stay apart."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import FREE, Variable
from lmpnn_kge.query.graph import query_graphs
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import NAMED, named_patterns

from ..formulas import brute_force, formulas
from ..graph.test_database import graph_of

PATTERNS = named_patterns()
UNIONS = {"2u": "2i", "up": "ip"}


def merged(text):
    (graph,) = query_graphs(parse(text), merge=True)
    return graph


@pytest.mark.parametrize(("union", "intersection"), UNIONS.items())
def test_a_union_merged_is_the_graph_of_its_intersection(union, intersection):
    union, intersection = PATTERNS[union].formula, PATTERNS[intersection].formula
    assert query_graphs(union, merge=True) == query_graphs(intersection)
    assert len(query_graphs(union)) == 2


@pytest.mark.parametrize("name", sorted({*NAMED} - {*UNIONS}))
def test_without_a_disjunction_there_is_nothing_to_merge(name):
    formula = PATTERNS[name].formula
    assert normalise(formula, merge=True) == normalise(formula)


@given(formula=formulas(st.sampled_from("ab"), st.sampled_from("rs"), leaves=7))
@settings(max_examples=200, deadline=None)
def test_one_disjunct_is_left_of_any_formula_and_binds_a_variable_once(formula):
    try:
        (only,) = normalise(formula, merge=True)
    except QueryError:
        assume(False)
    assert len(set(only.bound)) == len(only.bound)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("r(a, ?) & s(b, ?) | t(c, ?)", "r(a, ?) & s(b, ?) & t(c, ?)"),
        ("(r(a, ?) | s(b, ?)) & (t(c, ?) | u(d, ?))", "r(a, ?) & s(b, ?) & t(c, ?) & u(d, ?)"),
        ("r(a, ?) | r(a, ?)", "r(a, ?)"),
        ("!!(r(a, ?) | s(b, ?))", "r(a, ?) & s(b, ?)"),
        ("r(a, ?) | !(s(b, ?x) & t(?x, ?))", "r(a, ?) & !(s(b, ?x) & t(?x, ?))"),
        # Not both is: not the one or not the other.
        ("!(r(a, ?) & s(b, ?)) & t(c, ?)", "!r(a, ?) & !s(b, ?) & t(c, ?)"),
    ],
)
def test_every_or_is_read_as_and(text, same):
    assert merged(text) == query_graphs(parse(same))[0]


@pytest.mark.parametrize(
    "text",
    [
        "!(r(a, ?) | s(b, ?))",
        "!(r(a, ?) | s(?, ?x)) & t(?, c)",
        "!(r(a, ?x) & (s(?x, ?) | t(?x, ?))) & u(b, ?)",
        "r(a, ?) & !(s(?, ?x) & !(t(?x, ?) & u(?x, b)))",
    ],
)
def test_a_denied_disjunction_is_a_conjunction_already_and_keeps_its_meaning(text):
    assert normalise(parse(text), merge=True) == normalise(parse(text))


@pytest.mark.parametrize(
    ("text", "around"),
    [
        ("r(a, ?x) & s(?x, ?) | t(b, ?x) & u(?x, ?)", ["rs", "tu"]),
        ("(r(?x, ?) | s(?x, ?)) & t(a, ?)", ["r", "s"]),
        ("(r(?x, ?) | s(?x, ?)) & t(a, ?x_2) & u(?x_2, ?)", ["r", "s", "tu"]),
        ("t(a, ?x_2) & u(?x_2, ?) & (r(?x, ?) | s(?x, ?))", ["r", "s", "tu"]),
        ("r(?x, ?) | s(?x, ?) & t(?x_2, ?x) | u(?x, ?)", ["r", "st", "t", "u"]),
        ("(r(a, ?x) | s(b, ?x)) & t(?x, ?)", ["rst"]),
    ],
)
def test_a_variable_of_one_part_is_not_that_of_another(text, around):
    """around are the relations that touch each variable."""
    graph = merged(text)
    touching = [
        "".join(sorted({e.relation for e in graph.edges if node in (e.head, e.tail)}))
        for node, term in enumerate(graph.nodes)
        if isinstance(term, Variable) and term != FREE
    ]
    assert sorted(touching) == around


def test_a_new_name_for_a_variable_is_not_one_that_the_user_has_taken():
    both = "!(!(r0(?, ?x) & r1(?x, e0)) | !(r1(?, ?x) & r0(?x, e1)))"  # two variables of one name
    formula = parse(f"{both} & r0(?, ?x_2) & r0(?x_2, e2)")
    triples = {(3, 0, 0), (0, 1, 0), (3, 1, 1), (1, 0, 1), (3, 0, 2), (2, 0, 2)}
    assert brute_force(formula, triples) == [3]
    assert graph_of(triples).answer_rows(formula).tolist() == [3]
