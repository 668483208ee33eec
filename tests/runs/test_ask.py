"""Questions to a run: ranked answers, each known or predicted."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from lmpnn_kge import KnowledgeGraph, Run, RunError, parse, train
from lmpnn_kge.cli import main
from lmpnn_kge.methods.frequency import Frequency
from lmpnn_kge.query.patterns import named_patterns
from lmpnn_kge.runs.ask import ask

from ..conftest import TOY
from ..toy_runs import ROTATE, cli, sample_few, tiny, train_tiny

QUESTION = "friend_of(person/sven_ekdal, ?)"  # of whose ten friends two were held out
DENIAL = "known_in(?, ?x) & !mentor_of(?, ?y)"


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
    assert {a.mark for a in answers if a.id in full - train} == {"predicted, confirmed"}
    assert {a.mark for a in answers if a.id not in full | train} == {"predicted"}
    assert [a.score for a in answers] == sorted((a.score for a in answers), reverse=True)


def test_an_answer_that_only_lacks_the_edge_against_it_is_contradicted(run, graph):
    found = ask(run, DENIAL, len(graph.entity_ids), graph)
    train, full = (set(graph.answer(DENIAL, split)) for split in ("train", "test"))
    assert train - full
    assert {a.mark for a in found if a.id in train - full} == {"known, contradicted"}


def test_what_the_graph_refutes_is_left_out(run, graph):
    formula = f"known_in(?, ?x) & !{QUESTION}"
    friends = set(graph.answer(QUESTION, "train"))
    ranked = [id_ for id_, _ in run.rank(formula, len(graph.entity_ids))]
    possible = [id_ for id_ in ranked if id_ not in friends]
    assert len(friends) == 8
    assert possible[:5] != ranked[:5]
    assert [a.id for a in ask(run, formula, 5, graph)] == possible[:5]
    assert [a.id for a in ask(run, formula, len(ranked), graph)] == possible
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
    with pytest.raises(RunError, match="needs the graph of the run"):
        without_graph(run).ask(QUESTION, predicted=True)


def test_that_may_be_everything(run):
    nobody = " & ".join(f"? != {place}" for place in run.vocabulary.entity_ids)
    found = cli("ask", run.folder.path, f"known_in(?, ?x) & {nobody}")
    assert found.stdout == ""
    assert "the training edges rule out every entity" in found.stderr


def test_without_a_graph_nothing_is_marked(run):
    assert {answer.known for answer in without_graph(run).ask(QUESTION)} == {None}


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
    assert repr(first).startswith(f"Answer({first.label}, {first.id}: 0.")


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
    assert [set(row) for row in rows] == [
        {"id", "label", "score", "known", "confirmed", "mark"}
    ] * 2


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
