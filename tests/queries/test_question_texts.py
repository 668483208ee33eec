"""Many queries as text at once are the formulas of each of them."""

import numpy as np
import pytest

from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.question_texts import question_texts
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.patterns import named_patterns

NAMES = Vocabulary(
    ["a", "01", 'b "c"', "%s", "d, e", "?x", "05c", "Ünïc/ode", "new\nline", "{0}"],
    ["r", "0", "is a", "%d%%", "!"],
)


@pytest.mark.parametrize("name", named_patterns())
def test_texts_are_those_of_single_questions(name):
    pattern, count = named_patterns()[name], 60
    generator = np.random.default_rng(0)
    queries = Queries(
        pattern,
        generator.integers(10, size=(count, len(pattern.constants)), dtype=np.int32),
        generator.integers(10, size=(count, len(pattern.relations)), dtype=np.int32),
        Answers.none(count),
        Answers.none(count),
    )
    store = QueryStore("hostile", NAMES, {"test": {name: queries}})
    alone = [str(store.question(queries, row)) for row in range(count)]
    assert question_texts(NAMES, queries).tolist() == alone


def test_no_queries_have_no_texts():
    pattern = named_patterns()["2p"]
    assert question_texts(NAMES, Queries.none(pattern)).tolist() == []


def test_a_selection_remembers_the_numbers_of_its_queries():
    pattern = named_patterns()["1p"]
    rows = np.zeros((5, 1), np.int32)
    every = Queries(pattern, rows, rows, Answers.none(5), Answers.none(5))
    assert every.numbers.tolist() == [0, 1, 2, 3, 4]
    some = every.select(np.array([False, True, True, False, True]))
    assert some.select(np.array([False, True, True])).numbers.tolist() == [2, 4]
