"""Questions as rows of a pattern: they mean what the formula means."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.formula import Equal, Formula, Not, map_literals
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.runs.questions import Batch, Question, Shape, atoms_of_answer, by_pattern

from ..formulas import ENTITIES, RELATIONS, brute_force, formulas, graphs

NAMES = Vocabulary([f"e{i}" for i in range(ENTITIES)], [f"r{i}" for i in range(RELATIONS)])
FORMULAS = formulas(st.sampled_from(NAMES.entity_ids), st.sampled_from(NAMES.relation_ids))


def shape(text: str) -> str:
    return str(Shape.of(parse(text)).pattern)


def sides_sorted(formula: Formula) -> Formula:
    """Equality has no direction."""
    return map_literals(
        formula, lambda lit: Equal(*sorted(lit.terms, key=str)) if isinstance(lit, Equal) else lit
    )


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("borders(?, Kenya)", "r1(s1,f)"),
        ("capital(Kenya, ?)", "r1(s1,f)"),
        ("near(?, ?b) & in(?b, Kenya)", "r1(e1,f)&r2(s1,e1)"),
        ("near(Kenya, ?) & near(Chad, ?)", "r1(s1,f)&r2(s2,f)"),
        ("near(Kenya, ?) & !in(?, Kenya)", "r1(s1,f)&!r2(s1,f)"),
        ("near(Kenya, ?) | near(Kenya, ?)", "r1(s1,f)|r1(s1,f)"),
        ("near(Kenya, ?) & ? != Chad", "r1(s1,f)&f!=s2"),
    ],
)
def test_formulas_that_differ_only_in_names_and_directions_have_one_pattern(text, pattern):
    assert shape(text) == pattern


@given(FORMULAS)
def test_a_pattern_says_what_the_formula_says(formula):
    made = Shape.of(formula)
    assert sides_sorted(made.restored(made.pattern.formula)) == sides_sorted(formula)


@given(formula=FORMULAS, triples=graphs)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_a_question_has_the_answers_of_its_formula(formula, triples):
    try:
        normalise(formula)
    except QueryError:
        assume(False)
    train = np.array(sorted(triples), np.int64).reshape(-1, 3)
    splits = dict.fromkeys(("train", "valid", "test"), train)
    graph = KnowledgeGraph(Path(), "tiny", NAMES, splits)
    batch = Batch.of([Question.read(formula, NAMES)] * 2)
    answers = graph.database.answer(batch.pattern, batch.constants, batch.relations)
    assert answers.of(0).tolist() == answers.of(1).tolist() == brute_force(formula, triples)


def test_questions_of_a_pattern_stand_together_but_never_too_many():
    texts = ["r0(e0, ?)", "!r0(e0, ?)", "r1(?, e1)", "r0(e2, ?)", "!r1(?, e1)"]
    questions = [Question.read(text, NAMES) for text in texts]
    assert list(by_pattern(questions, 2)) == [[0, 2], [3], [1, 4]]
    batch = Batch.of([questions[0], questions[2]])
    assert batch.constants.tolist() == [[0], [1]]
    assert batch.relations.tolist() == [[0], [1 + RELATIONS]]


def test_a_part_of_a_batch_has_the_rows_of_its_places():
    batch = Batch.of([Question.read("r0(e0, ?) & !r1(e2, ?)", NAMES)])
    part = batch.part(Not(normalise(batch.pattern.formula)[0].literals[1].atom))
    assert (part.constants.tolist(), part.relations.tolist()) == ([[2]], [[1]])


def test_the_atoms_of_the_answer_are_the_positive_ones_with_it():
    question = Question.read(
        "(r0(e0, ?) | r0(?x, ?) & r1(?x, e1)) & !r1(e2, ?) & !(r0(?, ?y) & r1(?y, ?))", NAMES
    )
    first, second = atoms_of_answer(question.pattern)
    assert [(atom.relation, atom.at_tail, atom.constant) for atom in first] == [(0, True, 0)]
    assert [(atom.relation, atom.at_tail, atom.constant) for atom in second] == [(1, True, None)]
    loop = atoms_of_answer(Question.read("r0(?, ?)", NAMES).pattern)
    assert [atom.at_tail for atom in loop[0]] == [False, True]


def test_an_error_shows_the_formula_and_not_the_pattern():
    with pytest.raises(QueryError, match=r"a part of r0\(\?, e0\) & r1\(\?x, \?y\) is not"):
        Question.read("r0(?, e0) & r1(?x, ?y)", NAMES)
