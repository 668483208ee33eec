"""Following edges gives the answers and costs of statements."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph import follow
from lmpnn_kge.graph.follow import branch_of
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import BETAE, Pattern, parse_pattern

from ..formulas import ENTITIES, RELATIONS, brute_force, formulas, graphs
from .conftest import follow_nothing
from .test_database import CASES, MIXED, entity_names, graph_of, relation_names

SPLITS = ("train", "valid", "test")


def is_tree(formula) -> bool:
    return all(branch_of(disjunct) for disjunct in normalise(formula))


def results(graph, pattern, constants, relations):
    """Answers by the edges of each split, and costs."""
    ask = graph.database
    answers = [ask.answer(pattern, constants, relations, split) for split in SPLITS]
    answers.append(ask.missing_edges(pattern, constants, relations, "train", "test"))
    columns = [(found.offsets, found.values) for found in answers] + [(answers[-1].costs,)]
    return [column.tolist() for group in columns for column in group]


def both_ways(graph, pattern, constants, relations):
    """The results by following edges, and those by statements."""
    followed = results(graph, pattern, constants, relations)
    with pytest.MonkeyPatch.context() as patch:
        follow_nothing(patch)
        return followed, results(graph, pattern, constants, relations)


@given(formula=formulas(entity_names, relation_names), train=graphs, valid=graphs, test=graphs)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_random_trees_have_the_same_answers_and_costs(formula, train, valid, test):
    try:
        assume(is_tree(formula))
    except QueryError:
        assume(False)
    pattern = Pattern(formula)
    constants = np.array([[int(name[1:]) for name in pattern.constants]])
    relations = np.array([[int(name[1:]) for name in pattern.relations]])
    followed, stated = both_ways(graph_of(train, valid, test), pattern, constants, relations)
    assert followed == stated


@pytest.mark.parametrize("name", BETAE)
def test_all_types_of_betae_are_trees_and_many_queries_have_the_same_answers(name):
    pattern = parse_pattern(BETAE[name])
    assert is_tree(pattern.formula)
    random = np.random.default_rng(0)
    shape = ENTITIES, RELATIONS, ENTITIES
    graph = graph_of(*(random.integers(0, shape, (8, 3)).tolist() for _ in SPLITS))
    constants = random.integers(0, ENTITIES, (16, len(pattern.constants)))
    relations = random.integers(0, 2 * RELATIONS, (16, len(pattern.relations)))
    followed, stated = both_ways(graph, pattern, constants, relations)
    assert followed == stated
    assert followed[-1]  # some have answers


@pytest.mark.parametrize("text", CASES + MIXED)
@given(triples=graphs)
@settings(max_examples=5, deadline=None)
def test_formulas_of_every_form_are_answered_by_definition(text, triples):
    formula = parse(text)
    assert graph_of(triples).answer_rows(formula).tolist() == brute_force(formula, triples)


@pytest.mark.parametrize(
    "text",
    [
        "r0(?, ?)",
        "r0(e0, ?x) & r1(?x, ?) & r0(?x, ?)",
        "r0(e0, ?) & r0(e0, e1)",
        "r0(e0, ?) & r0(e0, ?x)",
        "r0(e0, ?x) & r0(?x, ?) & !r1(?x, ?)",
        "r0(e0, ?x) & r0(?x, ?) & !(r1(?, ?y) & r1(?y, ?x))",
        "r0(?, ?x) & r0(e0, ?x) & ? != ?x",
    ],
)
def test_a_formula_that_relates_two_values_is_not_a_tree(text):
    assert not is_tree(parse(text))


def test_a_statement_answers_if_too_many_edges_would_be_followed(monkeypatch):
    triples = {(0, 0, 1), (0, 0, 2), (1, 1, 3), (2, 1, 3)}
    monkeypatch.setattr(follow._Walk, "budget", 1)
    assert graph_of(triples).answer("r0(e0, ?x) & r1(?x, ?)") == ["e3"]


@pytest.mark.parametrize("length", [64, 65, 400])
def test_a_path_of_any_length_is_answered(length):
    circle = {(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 0)}
    steps = [f"r0(?x{n}, ?x{n + 1})" for n in range(length - 2)]
    path = " & ".join(["r0(e0, ?x0)", *steps, f"r0(?x{length - 2}, ?)"])
    assert graph_of(circle).answer(path) == [f"e{length % 4}"]
