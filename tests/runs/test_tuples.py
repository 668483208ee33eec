"""A run that is trained on, evaluated with and asked for tuples."""

import json

import pytest

from lmpnn_kge import KnowledgeGraph, QueryError, Run
from lmpnn_kge.methods.results import Results
from lmpnn_kge.runs.asking_tuples import MEAN, TRUTH

from ..conftest import TOY
from ..edited import read_json
from ..toy_runs import cli, sample_few, train_tiny
from .test_asking import ask, asking

CHAIN = "friend_of(person/sven_ekdal, ?1) & friend_of(?1, ?2) & ?1 != ?2"
TYPES = ("1p", "2p", "2f-p", "2f-nm", "3f-p")


@pytest.fixture(scope="module")
def graph():
    return KnowledgeGraph.open(TOY / "dataset")


@pytest.fixture(scope="module")
def run(tmp_path_factory, graph) -> Run:
    folder = tmp_path_factory.mktemp("tuples")
    sample_few(graph, folder / "queries", types=TYPES)
    return train_tiny(folder / "queries", folder / "run")


def test_a_network_is_trained_and_tested_on_every_free_variable(run):
    assert {*run.results.types} == {*TYPES}
    for name, result in run.results.types.items():
        assert (result.tuples is not None) == (name in TYPES[2:])
        if result.tuples is not None:
            assert 0 < result.tuples.joint.mrr <= 1
            assert result.tuples.marginal_queries <= result.queries


@pytest.mark.parametrize("method", ["search", "hybrid", "cqd-beam"])
def test_every_method_ranks_tuples(run, method):
    result = run.evaluate(method=method, limit=5).types["2f-p"]
    assert result.queries == 5
    assert 0 < result.tuples.joint.mrr <= 1
    assert 0 < result.tuples.multiply.mrr <= 1


def test_results_of_tuples_are_printed_and_kept(run):
    shown = cli("evaluate", run.folder.path, "--method", "search", "--limit", 3).stdout
    assert "multiply Hits@10" in shown
    assert "joint MRR" in shown
    kept = read_json(run.folder.path / "test.json")
    assert Results.from_json(kept, "test.json") == run.results
    assert "tuples" not in kept["types"]["1p"]


@pytest.mark.parametrize("method", [None, "search"])
def test_known_tuples_come_first_and_are_those_of_the_graph(run, graph, method):
    train, full = (set(graph.answer(CHAIN, split)) for split in ("train", "test"))
    answers = run.ask(CHAIN, len(train) + 20, method=method)
    tuples = [tuple(entity.id for entity in answer.entities) for answer in answers]
    assert {*tuples[: len(train)]} == train
    for answer, entities in zip(answers, tuples, strict=True):
        assert (answer.known, answer.confirmed) == (entities in train, entities in full)
        assert answer.probability is None
        assert answer.id == ", ".join(entities)
    assert TRUTH in answers.notes
    scores = [answer.score for answer in answers]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_predicted_tuples_are_not_known(run, graph):
    answers = run.ask(CHAIN, 10, predicted=True)
    assert len(answers) == 10
    assert not {tuple(e.id for e in a.entities) for a in answers} & {*graph.answer(CHAIN, "train")}
    assert {answer.mark for answer in answers} <= {
        "predicted",
        "predicted, confirmed by held-out edges",
    }


def test_reasons_name_every_entity_of_a_tuple(run):
    (answer,) = run.ask(CHAIN, 1, explain=1)
    (reason,) = answer.reasons
    assert reason.answers == answer.entities
    assert [check.status.value for check in reason.checks] == ["known", "known", "true"]
    (guess,) = run.ask(CHAIN, 1, predicted=True, explain=1)
    assert guess.reasons[0].answers == guess.entities
    again = run.explain(CHAIN, [entity.id for entity in guess.entities])
    assert again.reasons == guess.reasons
    assert again.score == pytest.approx(guess.score)
    with pytest.raises(QueryError, match="asks for 2 entities at once"):
        run.explain(CHAIN, "person/sven_ekdal")


def test_the_network_alone_ranks_tuples_by_their_entities(run):
    answers = run.ask(CHAIN, 5, method="lmpnn")
    assert MEAN in answers.notes
    assert len(answers) == 5
    assert all(a.entities[0] != a.entities[1] for a in answers)


def test_sparql_asks_for_tuples(run):
    pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    text = "SELECT ?b ?a { <kge:person%2Fsven_ekdal> <kge:friend_of> ?a . ?a <kge:friend_of> ?b }"
    answers = run.ask(f"{text} LIMIT 3")
    assert len(answers) == 3
    assert all(len(answer.entities) == 2 for answer in answers)


def test_what_takes_one_entity_refuses_several(run):
    for refusing in (run.rank, run.embed):
        with pytest.raises(QueryError, match=r"asks for 2 entities at once \(\?1, \?2\)"):
            refusing(CHAIN)


def test_tuples_on_the_command_line(run, tmp_path):
    picture = tmp_path / "why.svg"
    arguments = ("ask", run.folder.path, CHAIN, "-k", 2, "--method", "search")
    shown = cli(*arguments, "--explain", "-o", picture)
    assert 'known  "friend of"(' in shown.stdout
    assert TRUTH in shown.stderr
    assert picture.read_text().count('class="answer"') == 4
    records = json.loads(cli(*arguments, "--json").stdout)
    assert [len(record["entities"]) for record in records] == [2, 2]
    single = json.loads(cli("ask", run.folder.path, "friend_of(?, ?x)", "-k", 1, "--json").stdout)
    assert "entities" not in single[0]


def test_a_tuple_that_breaks_a_condition_is_not_offered():
    """All entities score alike, so that only the conditions speak against a tuple."""
    scores = [1.0] * 9
    pairs = {a.id for a in ask("borders(?1, ?2)", scores=scores, k=99, candidates="any")}
    assert len(pairs) == 72  # without those of an entity with itself
    likes = {a.id for a in ask("likes(?1, ?2)", scores=scores, k=99, candidates="any")}
    assert len(likes) == 81  # in which the training graph has such edges
    denied = ask("speaks(?1, ?l) & speaks(?2, ?l) & !borders(?1, ?2)", scores=scores, k=99)
    assert "Kenya, Uganda" not in {a.id for a in denied}
    other = ask("borders(?1, ?2) & ?2 != Kenya", scores=scores, k=99)
    assert not any(a.entities[1].id == "Kenya" for a in other)


def test_entities_that_a_relation_was_never_seen_with_come_last_or_not_at_all():
    first, *_, last = ask("borders(?1, ?2)", k=72)
    assert {first.entities[0].id, first.entities[1].id} <= {"Kenya", "Uganda", "Sudan"}
    assert last.entities[0].id not in {"Kenya", "Uganda"}
    typed = ask("borders(?1, ?2)", k=72, candidates="typed")
    assert {a.entities[0].id for a in typed} == {"Kenya", "Uganda"}


def test_without_a_graph_tuples_are_not_marked():
    answers = ask("borders(?1, ?2)", train=None, k=3)
    assert {answer.mark for answer in answers} == {"not checked against a graph"}


def test_nothing_left_is_said():
    answers = ask("borders(?1, ?2) & ?1 = ?2")
    assert not answers
    assert "no tuple is left" in answers.notes[-1]


def test_questions_of_both_kinds_are_answered_together():
    several = asking().ask(["borders(Kenya, ?)", "borders(?1, ?2)", "borders(?1, ?3)"])
    assert [hasattr(answers[0], "entities") for answers in several[:2]] == [False, True]
    assert isinstance(several[2], QueryError)
