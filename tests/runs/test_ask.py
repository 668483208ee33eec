"""Questions to a run: ranked answers, each known or predicted."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from lmpnn_kge import (
    Answer,
    ConfigError,
    KnowledgeGraph,
    QueryError,
    Run,
    RunError,
    parse,
    train,
)
from lmpnn_kge.cli import main
from lmpnn_kge.cli.ask import COLUMNS
from lmpnn_kge.methods.frequency import Frequency
from lmpnn_kge.query.patterns import named_patterns
from lmpnn_kge.runs.ask import ask

from ..conftest import TOY
from ..edited import edit_settings
from ..toy_runs import ROTATE, cli, sample_few, tiny, train_tiny

QUESTION = "friend_of(person/sven_ekdal, ?)"  # of whose ten friends two were held out
DENIAL = "known_in(?, ?x) & !mentor_of(?, ?y)"


def path_of(length):
    """A formula that is a path of so many steps."""
    steps = [f"friend_of(?x{n}, ?x{n + 1})" for n in range(length - 2)]
    return " & ".join([
        "friend_of(person/sven_ekdal, ?x0)", *steps, f"friend_of(?x{length - 2}, ?)"
    ])  # fmt: skip


@pytest.fixture(scope="module")
def graph():
    return KnowledgeGraph.open(TOY / "dataset")


@pytest.fixture(scope="module")
def run(tmp_path_factory, graph) -> Run:
    folder = tmp_path_factory.mktemp("asking")
    sample_few(graph, folder / "queries")
    return train_tiny(folder / "queries", folder / "run")


def without_graph(run: Run) -> Run:
    return dataclasses.replace(run, dataset=None)


def test_answers_are_marked_by_what_the_graph_says_of_them(run, graph):
    everything = len(graph.entity_ids)
    answers = ask(run, QUESTION, everything, graph)
    train, full = (set(graph.answer(QUESTION, split)) for split in ("train", "test"))
    assert train != full
    assert {a.id for a in answers if a.known} == train
    assert {a.id for a in answers if a.confirmed} == full
    assert {a.mark for a in answers if a.id in full - train} == {
        "predicted, confirmed by held-out edges"
    }
    assert {a.mark for a in answers if a.id not in full | train} == {"predicted"}
    by_score = run.ask(QUESTION, everything, candidates="any")
    assert [a.score for a in by_score] == sorted((a.score for a in by_score), reverse=True)
    assert sorted(by_score, key=str) == sorted(answers, key=str)


def test_an_answer_that_only_lacks_the_edge_against_it_is_contradicted(run, graph):
    found = ask(run, DENIAL, len(graph.entity_ids), graph)
    train, full = (set(graph.answer(DENIAL, split)) for split in ("train", "test"))
    assert train - full
    assert {a.mark for a in found if a.id in train - full} == {
        "known, but a held-out edge contradicts it"
    }


def test_what_the_graph_refutes_is_left_out(run, graph):
    formula = f"known_in(?, ?x) & !{QUESTION}"
    friends = set(graph.answer(QUESTION, "train"))
    ranked = [id_ for id_, _ in run.rank(formula, len(graph.entity_ids))]
    possible = [id_ for id_ in ranked if id_ not in friends]
    assert len(friends) == 8
    assert possible[:5] != ranked[:5]
    for k in (5, len(ranked)):
        answers = run.ask(formula, k, graph=graph, candidates="any", method="lmpnn")
        assert [a.id for a in answers] == possible[:k]
    assert [a.id for a in ask(without_graph(run), formula, len(ranked))] == ranked


def test_what_is_excluded_changes_nothing_but_that(run, graph):
    colleagues = "friend_of(person/sven_ekdal, ?x) & friend_of(?x, ?)"
    everything = len(graph.entity_ids)
    before = run.rank(colleagues, everything)
    after = run.rank(f"{colleagues} & ? != person/sven_ekdal", everything)
    assert after == [answer for answer in before if answer[0] != "person/sven_ekdal"]
    assert len(after) == everything - 1


def test_what_must_be_one_entity_can_be_no_other(run, graph):
    asked = ask(run, f"{QUESTION} & ? = person/ada_voss", 5, graph)
    assert [answer.id for answer in asked] == ["person/ada_voss"]


def test_the_known_can_be_left_out(run, graph):
    everything = ask(run, QUESTION, len(graph.entity_ids), graph)
    predicted = [answer for answer in everything if not answer.known]
    assert ask(run, QUESTION, len(graph.entity_ids), graph, predicted=True) == predicted
    found = cli("ask", run.folder.path, QUESTION, "-k", 2, "--predicted").stdout.splitlines()
    assert [answer.label in line for answer, line in zip(predicted, found, strict=False)] == [
        True
    ] * 2
    with pytest.raises(RunError, match="only the graph of the run tells predicted answers from"):
        without_graph(run).ask(QUESTION, predicted=True)


def test_that_may_be_everything(run):
    nobody = " & ".join(f"? != {place}" for place in run.vocabulary.entity_ids)
    found = cli("ask", run.folder.path, f"known_in(?, ?x) & {nobody}")
    assert found.stdout == ""
    assert "note: all 40 entities are ruled out: 40 by ? != person" in found.stderr


def test_without_a_graph_nothing_is_marked(run):
    answers = without_graph(run).ask(QUESTION)
    assert {answer.known for answer in answers} == {None}
    assert {answer.mark for answer in answers} == {"not checked against a graph"}


def test_a_run_knows_its_graph_and_its_results(run, graph):
    assert run.graph.vocabulary.has_ids_of(graph.vocabulary)
    assert run.ask(QUESTION, 3) == ask(run, QUESTION, 3, graph)
    assert run.ask(parse(QUESTION), 3) == run.ask(QUESTION, 3)
    assert run.results == Run.open(run.folder.path).results == run.evaluate("test")


def test_ask_takes_folders_where_it_takes_what_is_open(run):
    assert ask(run.folder.path, QUESTION, 3, TOY / "dataset") == run.ask(QUESTION, 3)


def test_runs_and_answers_print_as_one_helpful_line(run):
    assert "rotate on toykg, Results(test: mean MRR" in repr(run)
    first = run.ask(QUESTION, 1)[0]
    assert repr(first) == f"Answer({first.label}, {first.id}: 100.0%, known)"
    by_network = run.ask(QUESTION, 1, method="lmpnn")[0]
    assert repr(by_network).startswith(f"Answer({by_network.label}, {by_network.id}: 0.")


def test_a_moved_run_finds_its_checkpoint_and_its_graph_beside_itself(tmp_path, graph):
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    shutil.copy(ROTATE, home / "rotate.pt")
    shutil.copytree(TOY / "dataset", home / "data" / "toykg")
    sample_few(graph, home / "data" / "toykg-queries")
    train(
        home / "rotate.pt",
        dataset=home / "data" / "toykg",
        queries=home / "data" / "toykg-queries",
        out=home / "runs" / "mine",
        settings=tiny(),
    )
    home.rename(tmp_path / "elsewhere")
    moved = Run.open(tmp_path / "elsewhere" / "runs" / "mine")
    assert moved.notes == ()
    assert moved.graph.folder == tmp_path / "elsewhere" / "data" / "toykg"
    assert moved.evaluate("test") == moved.results
    train(out=tmp_path / "elsewhere" / "runs" / "mine", resume=True, settings={"epochs": 3})


def test_the_command_prints_labels_and_marks(run, graph):
    lines = cli("ask", run.folder.path, QUESTION, "-k", 3).stdout.splitlines()
    best = ask(run, QUESTION, 3, graph)
    assert len(lines) == 3
    for line, answer in zip(lines, best, strict=True):
        assert answer.label in line
        assert answer.mark in line
        assert f"({answer.id})" in line


def test_the_command_prints_json(run):
    rows = json.loads(cli("ask", run.folder.path, QUESTION, "-k", 2, "--json").stdout)
    assert [set(row) for row in rows] == [{*COLUMNS, "reasons"}] * 2


def test_a_probability_takes_the_place_of_the_score():
    answer = Answer("m1", "Rome", 0.5)
    assert (answer.figure, repr(answer)) == (
        "0.500",
        "Answer(Rome, m1: 0.500, not checked against a graph)",
    )
    assert dataclasses.replace(answer, probability=0.934).figure == "93.4%"


def test_many_questions_are_asked_in_one_call(run, graph):
    questions = [QUESTION, DENIAL, parse("friend_of(person/ada_voss, ?)"), QUESTION]
    answers = run.ask(questions, 5)
    assert [found.question for found in answers] == list(map(str, questions))
    for question, found in zip(questions, answers, strict=True):
        alone = run.ask(question, 5)
        assert [(a.id, a.mark) for a in found] == [(a.id, a.mark) for a in alone]
        assert [a.score for a in found] == pytest.approx([a.score for a in alone], abs=1e-5)
    assert ask(run, tuple(questions), 5, graph) == answers
    assert run.ask([]) == []


def test_a_wrong_question_among_many_is_numbered(run):
    with pytest.raises(
        QueryError, match=r"question 2: there is no entity.*\(column 11\)"
    ) as raised:
        run.ask([QUESTION, "friend_of(person/ada_vos, ?)"])
    assert raised.value.excerpt.startswith("friend_of(person/ada_vos, ?)\n")
    first, second = run.ask_each([QUESTION, "friend_of(person/ada_vos, ?)"])
    assert first == run.ask(QUESTION)
    assert isinstance(second, QueryError)


def test_cqd_beam_answers_by_the_scores_of_the_checkpoint(run):
    question = "friend_of(person/sven_ekdal, ?)"
    entity, relation = run.vocabulary.entity("person/sven_ekdal"), 0
    scores = run.backbone.score_tails(torch.tensor([entity]), torch.tensor([relation]))[0]
    best = [run.vocabulary.entity_ids[row] for row in scores.topk(5).indices]
    assert [id_ for id_, _ in run.rank(question, 5, method="cqd-beam")] == best
    answers = run.ask(question, len(scores), method="cqd-beam", candidates="any")
    assert [a.id for a in answers][:4] == [id_ for id_ in best if id_ != "person/sven_ekdal"][:4]
    assert run.ask(question, method="hybrid") == run.ask(question)


def test_a_beam_that_has_nowhere_to_begin_is_the_error_of_its_question(run):
    answers, error = run.ask_each([QUESTION, "known_in(?, ?x)"], method="cqd-beam")
    assert len(answers) == 10
    assert "a beam needs an entity to begin with" in str(error)


def test_a_ranking_needs_no_graph(run, tmp_path):
    lost = dataclasses.replace(run, dataset=tmp_path / "nowhere")
    assert lost.rank(QUESTION) == run.rank(QUESTION)


def test_an_unknown_method_or_treatment_of_candidates_is_one_line(run):
    with pytest.raises(ConfigError, match=r"no method 'cqd' to ask with; .*hybrid, lmpnn, search"):
        run.ask(QUESTION, method="cqd")
    with pytest.raises(ConfigError, match="candidates is 'type'; did you mean 'typed'"):
        run.ask(QUESTION, candidates="type")


def test_a_formula_that_is_too_long_for_the_network_is_refused_with_what_to_do(run):
    assert len(run.ask(path_of(5), method="lmpnn")) == 10
    with pytest.raises(QueryError, match=r"layer 300 times .* ask with --method search"):
        run.ask(path_of(300), method="lmpnn")


def test_a_run_whose_training_is_not_finished_says_so(run, tmp_path):
    assert run.notes == Run.open(run.folder.path).notes == ()
    folder = tmp_path / "unfinished"
    shutil.copytree(run.folder.path, folder)
    edit_settings(folder, lambda text: text.replace("epochs: 2", "epochs: 5"))
    (note,) = Run.open(folder).notes
    assert "is not finished: 2 of 5 epochs are done" in note
    assert f"note: {note}" in cli("ask", folder, QUESTION).stderr


def test_training_that_stopped_because_nothing_improved_is_finished(tmp_path, toy_queries):
    folder = train_tiny(toy_queries, tmp_path / "run", epochs=9, patience=1, learning_rate=1e-9)
    assert Run.open(folder.folder.path).notes == ()
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) < 9


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("friend_of(person/ada_vos, ?)", "did you mean"),
        ("friend_off(person/ada_voss, ?)", "did you mean"),
        ("friend_of(person/ada_voss, ?", "column"),
        ("friend_of(person/ada_voss, person/ada_voss)", "?"),
    ],
)
def test_a_wrong_question_is_pointed_at(run, formula, said):
    result = CliRunner().invoke(main, ["ask", str(run.folder.path), formula])
    assert result.exit_code == 2
    assert said in result.stderr


def test_frequency_counts_how_often_an_entity_ends_the_last_relation(run, graph):
    baseline = Frequency.of(graph, run.backbone)
    relation, count = 2, len(graph.relation_ids)
    s, p, o = graph.splits["train"].T
    pattern = named_patterns()["2p"]
    relations = torch.tensor([[0, relation], [0, relation + count]])
    scores = baseline.answer(pattern, torch.zeros(2, 1).long(), relations)(slice(None))
    entities = len(graph.entity_ids)
    for row, ends in ((0, o[p == relation]), (1, s[p == relation])):
        expected = np.log1p(np.bincount(ends, minlength=entities))
        np.testing.assert_allclose(scores[row], expected, rtol=1e-6)


def test_frequency_leaves_out_what_is_negated(run, graph):
    baseline = Frequency.of(graph, run.backbone)
    patterns = named_patterns()
    constants, relations = torch.zeros(1, 2).long(), torch.tensor([[1, 3]])
    negated = baseline.answer(patterns["2in"], constants, relations)(slice(None))
    both = baseline.answer(patterns["2i"], constants, relations)(slice(None))
    one, three = (
        baseline.answer(patterns["1p"], constants[:, :1], relations[:, [place]])(slice(None))
        for place in (0, 1)
    )
    assert torch.equal(negated, one)
    assert torch.equal(both, one + three)
