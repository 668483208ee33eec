"""Exact answers against the definition of a formula's meaning."""

import itertools
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import DatasetError, QueryError, TimeLimitError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.formula import FREE, Variable
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern, parse_pattern
from lmpnn_kge.work.deadline import time_limit

from ..formulas import ENTITIES, RELATIONS, brute_force, formulas, graphs
from .conftest import follow_nothing

entity_names = st.sampled_from([f"e{i}" for i in range(ENTITIES)])
relation_names = st.sampled_from([f"r{i}" for i in range(RELATIONS)])


@pytest.fixture(autouse=True, scope="module")
def statements_answer():
    with pytest.MonkeyPatch.context() as patch:
        follow_nothing(patch)
        yield


def graph_of(triples, valid=(), test=()) -> KnowledgeGraph:
    splits = {
        name: np.array(sorted(rows), np.int64).reshape(-1, 3)
        for name, rows in (("train", triples), ("valid", valid), ("test", test))
    }
    entities = [f"e{i}" for i in range(ENTITIES)]
    relations = [f"r{i}" for i in range(RELATIONS)]
    return KnowledgeGraph(Path(), "tiny", Vocabulary(entities, relations), splits)


@given(formula=formulas(entity_names, relation_names), triples=graphs)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_answers_equal_those_of_trying_every_assignment(formula, triples):
    try:
        normalise(formula)
    except QueryError as refused:
        event(str(refused).split(" of ")[0])
        assume(False)
    assert graph_of(triples).answer_rows(formula).tolist() == brute_force(formula, triples)


@given(
    formula=formulas(entity_names, relation_names, leaves=3),
    train=graphs,
    valid=graphs,
    test=graphs,
)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_a_split_knows_its_own_edges_and_those_of_earlier_splits(formula, train, valid, test):
    try:
        normalise(formula)
    except QueryError:
        assume(False)
    graph = graph_of(train, valid, test)
    for split, known in (
        ("train", train),
        ("valid", train | valid),
        ("test", train | valid | test),
    ):
        assert graph.answer_rows(formula, split).tolist() == brute_force(formula, known)


CASES = [
    "r0(e0, ?)",
    "r0(?, ?)",
    "r0(e0, ?x) & r1(?x, ?) & r0(?x, ?)",
    "r0(e0, ?) & r1(?x, ?)",
    "r0(?x, ?) & r1(?x, ?y) & r0(?y, ?)",
    "r0(?, ?x) & r0(?, ?y) & ?x != ?y",
    "!r0(e0, ?)",
    "!r0(?x, ?)",
    "!r0(?x, ?) & !r1(?x, ?)",
    "!(r0(e0, ?x) & r1(?x, ?)) & r0(e1, ?)",
    "!(r0(e0, ?x) & !(r1(?x, ?y) & r0(?y, ?)))",
    "r0(e0, ?) | r1(?, ?x) & r0(?x, e0)",
    "r0(e0, ?) & r1(e0, ?)",
    "? = e2",
    "? = ?x & r0(?x, e0)",
    "? != e0 & ? != e1",
    "r0(e0, ?) & !r0(e0, ?)",
]


@pytest.mark.parametrize("text", CASES)
@given(triples=graphs)
@settings(max_examples=10, deadline=None)
def test_formulas_of_every_form_are_answered_by_definition(text, triples):
    formula = parse(text)
    assert graph_of(triples).answer_rows(formula).tolist() == brute_force(formula, triples)


def test_variables_differ_by_case():
    formula = parse("r0(?x, ?X) & r0(?, ?x) & r1(?, ?X) & r0(?x, ?y) & r1(?X, ?y)")
    triples = {(1, 0, 2), (0, 0, 1), (0, 1, 2), (1, 0, 3), (2, 1, 3)}
    assert graph_of(triples).answer_rows(formula).tolist() == brute_force(formula, triples) == [0]


def cheapest(formula, train, everything, entity) -> int:
    """The fewest atoms without a training edge, over all ways to make a positive formula true."""
    costs = []
    for disjunct in normalise(formula):
        for chosen in itertools.product(range(ENTITIES), repeat=len(disjunct.bound)):
            values = {FREE: entity, **dict(zip(disjunct.bound, chosen, strict=True))}
            edges = [
                tuple(
                    values[term] if isinstance(term, Variable) else int(term.name[1:])
                    for term in literal.terms
                )
                for literal in disjunct.literals
            ]
            relations = [int(literal.atom.relation[1:]) for literal in disjunct.literals]
            triples = [(h, r, t) for (h, t), r in zip(edges, relations, strict=True)]
            if everything.issuperset(triples):
                costs.append(sum(triple not in train for triple in triples))
    return min(costs)


@pytest.mark.parametrize(
    "text",
    [
        "r0(e0, ?)",
        "r0(e0, ?x) & r1(?x, ?)",
        "r0(e0, ?) & r1(?x, ?)",
        "r0(e0, ?x) & r1(?x, ?y) & r0(?y, ?) & r0(?x, ?y)",
        "r0(e0, ?) | r1(e1, ?x) & r1(?x, ?)",
    ],
)
@given(
    train=graphs,
    test=graphs,
)
@settings(max_examples=15, deadline=None)
def test_missing_edges_are_those_of_the_cheapest_witness(text, train, test):
    graph = graph_of(train, (), test)
    pattern = Pattern(parse(text))
    constants, relations = graph.vocabulary.resolve(pattern)
    answers = graph.database.missing_edges(
        pattern, constants[None], relations[None], observed="train", full="test"
    )
    assert answers.values.tolist() == brute_force(pattern.formula, train | test)
    assert answers.costs.tolist() == [
        cheapest(pattern.formula, train, train | test, entity) for entity in answers.values
    ]


def test_all_queries_of_a_pattern_are_answered_at_once():
    graph = graph_of({(0, 0, 1), (1, 1, 2), (3, 0, 1), (3, 0, 2)})
    pattern = parse_pattern("r1(s1,e1)&r2(e1,f)")
    answers = graph.database.answer(pattern, np.array([[0], [3], [2]]), np.array([[0, 1]] * 3))
    assert [answers.of(i).tolist() for i in range(3)] == [[2], [2], []]


def test_a_relation_beyond_the_last_is_an_inverse():
    graph = graph_of({(0, 0, 1), (2, 0, 1)})
    pattern = parse_pattern("r1(s1,f)")
    inverse = 0 + RELATIONS
    answers = graph.database.answer(pattern, np.array([[1]]), np.array([[inverse]]))
    assert answers.of(0).tolist() == [0, 2]


def test_an_unknown_split_is_refused():
    with pytest.raises(DatasetError, match="did you mean 'train'"):
        graph_of(set()).answer("r0(e0, ?)", split="trian")


MIXED = [*CASES, "r1(e1, ?x) & r0(?x, ?y) & r1(?y, ?)", "!r0(?, ?) & r1(?, e2)"]


def test_threads_that_share_a_graph_get_the_answers_of_one_thread():
    random_triples = random.Random(5)
    triples = [
        (random_triples.randrange(ENTITIES), random_triples.randrange(RELATIONS), i % ENTITIES)
        for i in range(14)
    ]
    graph = graph_of(triples[:6], triples[6:9], triples[9:])
    questions = [(text, split) for text in MIXED for split in ("train", "valid", "test")]
    alone = {question: ask_everything(graph, *question) for question in questions}
    shared = graph_of(triples[:6], triples[6:9], triples[9:])  # whose database is not made yet
    order = random.Random(7).choices(questions, k=150)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda question: ask_everything(shared, *question), order))
    assert answers == [alone[question] for question in order]


def ask_everything(graph, text, split):
    """Answers, entities that are ruled out, and the reason for each answer."""
    rows = graph.answer_rows(text, split).tolist()
    reasons = graph.witnesses(text, rows, split)
    return rows, graph.refuted_rows(text, split).tolist(), reasons


def many_entities(count: int = 1000) -> KnowledgeGraph:
    splits = {name: np.zeros((0, 3), np.int64) for name in ("valid", "test")}
    names = Vocabulary([f"e{i}" for i in range(count)], ["r0"])
    return KnowledgeGraph(Path(), "many", names, {"train": np.array([[0, 0, 1]]), **splits})


#: 10⁹ combinations of entities, the most that are tried, and none of them fits.
SLOW = "? != ?x & ? != ?y & ?x != ?y & !r0(?, ?x) & !r0(?x, ?y) & !r0(?y, ?)"


def test_a_statement_ends_when_its_time_is_over_and_the_next_one_is_answered():
    graph = many_entities()
    with time_limit(0.05), pytest.raises(TimeLimitError, match=r"within 0\.05 s"):
        graph.answer(SLOW)
    with time_limit(1000):
        assert graph.answer("r0(e0, ?)") == ["e1"]
    assert graph.answer("r0(e0, ?)") == ["e1"]


def test_without_time_nothing_is_asked():
    graph = many_entities(2)
    with time_limit(1e-9), pytest.raises(TimeLimitError):
        graph.answer("r0(e0, ?)")


def test_a_limit_stops_only_the_thread_that_set_it():
    graph = many_entities()
    graph.answer("r0(e0, ?)")

    def hurried(_):
        with time_limit(0.02), pytest.raises(TimeLimitError):
            graph.answer(SLOW)

    with ThreadPoolExecutor(8) as pool:
        late = [pool.submit(hurried, None) for _ in range(4)]
        answers = list(pool.map(graph.answer, ["r0(e0, ?)"] * 40))
        for future in late:
            future.result()
    assert answers == [["e1"]] * 40


def test_nothing_but_answers_is_on_standard_output(toy_dataset):
    program = (
        "from lmpnn_kge import KnowledgeGraph\n"
        f"graph = KnowledgeGraph.open({str(toy_dataset)!r})\n"
        "with graph.database.engine._session() as session:\n"
        '    print(session.fetch("SELECT value FROM duckdb_settings() '
        "WHERE name = 'enable_progress_bar'\"))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "false" in done.stdout
