"""Which entities are offered as answers, in which order, and what is noted about them."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.runs.asking import Asking
from lmpnn_kge.runs.best import best_rows
from lmpnn_kge.runs.fitting import FittedMethod
from lmpnn_kge.runs.knowledge import Knowledge

NAMES = Vocabulary(
    ["Kenya", "Uganda", "Sudan", "Chad", "English", "Arabic", "nausea/1", "nausea/2", "aspirin"],
    ["borders", "speaks", "causes", "likes"],
    [None] * 6 + ["Nausea", "Nausea", None],
)
TRAIN = """Kenya borders Uganda, Uganda borders Kenya, Uganda borders Sudan, Kenya speaks English,
    Sudan speaks Arabic, aspirin causes nausea/2, Kenya likes Kenya, Kenya likes Uganda"""
TEST = "Chad speaks Arabic, Uganda speaks English"


@dataclass(frozen=True)
class Fixed:
    """A method that scores every question alike, and remembers which it was asked at once."""

    scores: torch.Tensor  # [E]
    batches: list

    @property
    def num_entities(self):
        return len(self.scores)

    @property
    def device(self):
        return self.scores.device

    streamed = None

    def answer(self, pattern, constants, relations):
        self.batches.append((str(pattern), constants.tolist(), relations.tolist()))
        return lambda rows, out=None: self.scores.repeat(len(constants), 1)[rows]


def triples(text: str, names: Vocabulary = NAMES):
    rows = [
        (names.entity(head), names.relation(relation), names.entity(tail))
        for head, relation, tail in (edge.split() for edge in text.split(","))
    ]
    return np.array(rows, np.int64)


def graph(train: str = TRAIN, names: Vocabulary = NAMES) -> KnowledgeGraph:
    splits = {"train": triples(train, names), "test": triples(TEST, names)}
    return KnowledgeGraph(Path(), "tiny", names, {**splits, "valid": splits["test"]})


def asking(train: str | None = TRAIN, scores=None, **options) -> Asking:
    """The last entity has the best score."""
    values = torch.arange(9.0) / 10 if scores is None else torch.tensor(scores)
    knowledge = None
    if train is not None:
        knowledge = Knowledge(graph(train), NAMES, torch.device("cpu"))
    return Asking(NAMES, FittedMethod(Fixed(values, [])), knowledge, **{"k": 9, **options})


def ask(formula: str, **options):
    (answers,) = asking(**options).ask([formula])
    assert not isinstance(answers, QueryError), answers
    return answers


def ids(formula: str, **options) -> list[str]:
    return [answer.id for answer in ask(formula, **options)]


def test_an_entity_is_not_offered_as_its_own_neighbour():
    assert "Kenya" not in ids("borders(Kenya, ?)")
    assert "Kenya" not in ids("borders(?, Kenya) & speaks(?, ?x)")
    assert "English" not in ids("borders(?, Kenya) & speaks(?, English)")
    assert "Kenya" not in ids("borders(Kenya, ?)", candidates="any")
    assert "Kenya" not in ids("borders(Kenya, ?)", train=None)


def test_unless_the_training_graph_has_such_loops_for_the_relation():
    loops = TRAIN + ", Chad borders Chad"
    assert "Kenya" in ids("borders(Kenya, ?)", train=loops)
    assert "Kenya" not in ids("speaks(Kenya, ?)", train=loops)


def test_only_an_edge_to_itself_speaks_against_an_entity_of_the_question():
    assert "Kenya" in ids("borders(Kenya, ?x) & borders(?x, ?)")
    assert "Uganda" in ids("borders(Kenya, ?) | borders(Uganda, ?)")
    assert "Kenya" in ids("speaks(?, English) & !borders(?, Kenya)")


def test_a_known_answer_is_always_offered():
    for candidates in ("typed-first", "typed", "any"):
        answers = ask("likes(Kenya, ?)", candidates=candidates)
        assert {answer.id for answer in answers if answer.known} == {"Kenya", "Uganda"}


def test_entities_that_the_relation_was_never_seen_with_come_last():
    speakers = ["Sudan", "Kenya"]
    assert ids("speaks(?, English)")[:2] == speakers
    others = ["aspirin", "nausea/2", "nausea/1", "Arabic", "Chad", "Uganda"]
    assert ids("speaks(?, English)")[2:] == others
    assert ids("speaks(?, English)", candidates="typed") == speakers
    by_score = ids("speaks(?, English)", candidates="any")
    assert by_score == [id_ for id_ in reversed(NAMES.entity_ids) if id_ != "English"]
    assert ids("speaks(?, English)", train=None, candidates="typed") == by_score


def test_both_ends_of_a_relation_have_types_of_their_own():
    assert ids("causes(?, ?x)", candidates="typed") == ["aspirin"]
    assert ids("causes(?x, ?)", candidates="typed") == ["nausea/2"]


def test_an_answer_fits_one_of_the_disjuncts_with_all_its_atoms():
    typed = {"candidates": "typed"}
    assert ids("speaks(?, English) | causes(?, ?x)", **typed) == ["aspirin", "Sudan", "Kenya"]
    assert ids("speaks(?, English) & borders(?, ?x)", **typed) == ["Kenya"]
    assert len(ids("!speaks(?, English)", **typed)) == 8  # nothing is known of its type


def test_fewer_answers_are_those_that_come_first():
    for candidates in ("typed-first", "typed", "any"):
        every = ids("speaks(?, English)", candidates=candidates)
        for k in range(1, 9):
            assert ids("speaks(?, English)", candidates=candidates, k=k) == every[:k]


def test_a_score_of_minus_infinity_is_that_of_an_entity_like_others():
    scores = [-torch.inf] * 9
    assert len(ids("speaks(?, English) & ? != Kenya", scores=scores)) == 7


def test_a_label_means_the_entity_that_the_relation_was_seen_with():
    answers = ask("causes(?, Nausea)")
    assert answers.notes == (
        "'Nausea' is the label of 2 entities; nausea/2 was taken, because only it has known edges "
        "of this kind",
    )
    assert answers == ask("causes(?, nausea/2)")
    (error,) = asking(None).ask(["causes(?, Nausea)"])
    assert "'Nausea' is the label of 2 entity ids: nausea/1, nausea/2" in str(error)


def test_suggestions_begin_with_names_that_fit_their_place():
    (error,) = asking().ask(["causes(?, nausea/)"])
    assert str(error).index("'nausea/2'") < str(error).index("'nausea/1'")
    (error,) = asking().ask(["causes(?, nausea/1x)"])
    assert str(error).index("'nausea/2'") < str(error).index("'nausea/1'?")
    (error,) = asking(None).ask(["causes(?, nausea/1x)"])
    assert "did you mean 'nausea/1' or" in str(error)


def test_a_premise_that_the_graph_does_not_know_is_noted():
    assert ask("borders(Chad, ?)").notes == ("no edge borders(Chad, ?) is known",)
    assert ask("borders(?x, ?) & speaks(?x, aspirin)").notes == (
        "no edge speaks(?x, aspirin) is known",
    )
    assert ask("borders(Kenya, ?) & borders(Kenya, Chad)").notes == (
        "no edge borders(Kenya, Chad) is known",
    )
    assert ask("borders(Kenya, ?) & !borders(?, Chad)").notes == (
        "no edge borders(?, Chad) is known, so its negation excludes nothing",
    )
    assert ask("borders(Kenya, ?) & borders(Kenya, Uganda)").notes == ()
    assert ask("borders(Chad, ?)", train=None).notes == ()


@pytest.mark.parametrize(
    ("formula", "options", "reason"),
    [
        ("? = Kenya & ? != Kenya", {}, "1 by ? != Kenya, 8 by ? = Kenya"),
        (
            "borders(Kenya, ?) & causes(?, ?x)",
            {"candidates": "typed"},
            "1 as named in the question, 8 as never seen in place of ? in borders(Kenya, ?), "
            "causes(?, ?x)",
        ),
        (
            "speaks(?, English) & !speaks(?, ?l)",
            {"candidates": "typed"},
            "1 as named in the question, 2 by !speaks(?, ?l), 6 as never seen in place of ? in "
            "speaks(?, English)",
        ),
        (
            "causes(?, nausea/2)",
            {"predicted": True, "candidates": "typed"},
            "1 as named in the question, 7 as never seen in place of ? in causes(?, nausea/2), "
            "1 as known",
        ),
        (
            "? = Kenya & !speaks(?, ?l) | !speaks(?, ?l) & ? = Sudan",
            {},
            "9 by conditions in every part of the formula",
        ),
    ],
)
def test_no_answers_come_with_the_reason(formula, options, reason):
    answers = ask(formula, **options)
    assert answers == []
    assert answers.notes[-1] == f"all 9 entities are ruled out: {reason}"


def test_questions_of_one_pattern_are_answered_at_once_and_in_their_order():
    questions = [
        "borders(Kenya, ?)",
        "speaks(?, English) & !borders(?, Chad)",
        "no formula",
        "speaks(?, Arabic)",
        "borders(Kenia, ?)",
    ]
    asker = asking()
    answers = asker.ask(questions)
    assert [pattern for pattern, *_ in asker.method.batches] == ["r1(s1,f)", "r1(s1,f)&!r2(s2,f)"]
    assert asker.method.batches[0] == ("r1(s1,f)", [[0], [5]], [[0], [1 + 4]])
    for question, answer in zip(questions, answers, strict=True):
        (alone,) = asking().ask([question])
        if isinstance(alone, QueryError):
            assert str(alone) == str(answer)
        else:
            assert (answer, answer.notes, answer.question) == (alone, alone.notes, question)
    assert [isinstance(answer, QueryError) for answer in answers] == [
        False,
        False,
        True,
        False,
        True,
    ]


def test_no_more_scores_are_held_than_fit(monkeypatch):
    monkeypatch.setattr("lmpnn_kge.runs.asking.CHUNK_SCORES", 2 * 9)
    asker = asking()
    asker.ask(["borders(Kenya, ?)"] * 5)
    assert [len(constants) for _, constants, _ in asker.method.batches] == [2, 2, 1]


def test_what_is_refused_for_many_is_answered_one_by_one(monkeypatch):
    monkeypatch.setattr("lmpnn_kge.graph.database.MAX_COMBINATIONS", 9**2 + 1)
    questions = ["!borders(?x, ?) & !speaks(?x, ?)"] * 2
    answers = asking().ask(questions)
    assert all(len(found) > 0 for found in answers)
    (refused,) = asking().ask(
        ["!borders(?x, ?) & !speaks(?x, ?) & !causes(?x, ?y) & !likes(?y, ?)"]
    )
    assert isinstance(refused, QueryError)


def test_a_graph_with_other_rows_is_asked_by_name():
    other = Vocabulary([*reversed(NAMES.entity_ids[:-1]), "Peru"], [*reversed(NAMES.relation_ids)])
    edges = ",".join(edge for edge in TRAIN.split(",") if "aspirin" not in edge)
    knowledge = Knowledge(graph(edges + ", Peru speaks English", other), NAMES, torch.device("cpu"))
    asker = Asking(NAMES, FittedMethod(Fixed(torch.arange(9.0), [])), knowledge, 9)
    answers, error = asker.ask(["speaks(?, English)", "causes(aspirin, ?)"])
    same = ask("speaks(?, English)", scores=list(map(float, range(9))))
    assert answers == same
    assert str(error) == "the graph tiny has no entity 'aspirin'"


@given(st.lists(st.sampled_from([-math.inf, 0.0, 1.0, 2.0]), min_size=1, max_size=8), st.data())
def test_more_answers_begin_with_fewer_answers(scores, data):
    count = len(scores)
    omitted, fitting = (
        torch.tensor([data.draw(st.lists(st.booleans(), min_size=count, max_size=count))])
        for _ in range(2)
    )
    everything = [row for row in range(count) if not omitted[0, row]]
    expected = sorted(everything, key=lambda row: (not fitting[0, row], -scores[row], row))
    for k in range(count + 2):
        (rows,) = best_rows(torch.tensor([scores]), omitted, fitting, k)
        assert rows.tolist() == expected[:k]
