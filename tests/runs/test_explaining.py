"""Every reason is right: what it calls known is in the graph, what it calls predicted is not."""

import csv
import dataclasses
import io
import json
import math

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lmpnn_kge import QueryError, Run, RunError, parse
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.reason import Status
from lmpnn_kge.work.listener import SILENT

from ..conftest import TOY
from ..formulas import formulas
from ..toy_runs import cli, train_tiny

GRAPH = KnowledgeGraph.open(TOY / "dataset")
FRIENDS = "friend_of(person/sven_ekdal, ?)"
TOWNS = "friend_of(person/sven_ekdal, ?x) & lives_in(?x, ?)"
DENIAL = "known_in(?, ?x) & !(friend_of(?, ?y) & friend_of(?y, person/ada_voss))"

#: What a condition of a known answer may be.
SATISFIED = {Status.KNOWN, Status.NOT_KNOWN, Status.TRUE, Status.NO_PATH}

any_formula = formulas(st.sampled_from(GRAPH.entity_ids), st.sampled_from(GRAPH.relation_ids))


@pytest.fixture(scope="module")
def run(tmp_path_factory, toy_queries) -> Run:
    return train_tiny(toy_queries, tmp_path_factory.mktemp("explained") / "run")


@pytest.fixture(scope="module")
def train_edges():
    names = GRAPH.vocabulary
    edges = {
        (names.entity_ids[h], names.relation_ids[r], names.entity_ids[t])
        for h, r, t in GRAPH.triples("train").tolist()
    }
    return edges.__contains__  # hypothesis prints arguments, and a set would be a long one


def edge_of(atom):
    return atom.head.id, atom.relation.id, atom.tail.id


def check(answer, reason, train_edges, edges):
    """All that is claimed about one answer by one reason."""
    assert reason.answer.id == answer.id
    assert reason.truth == math.prod(check.truth for check in reason.checks)
    assert 0 <= reason.truth <= 1
    for atom in reason.atoms:
        names = [reason.names[term].id for term in atom.literal.terms]
        assert [atom.head.id, atom.tail.id] == names
        if atom.relation is None:
            holds = (atom.head.id == atom.tail.id) != atom.negated
            assert atom.status is (Status.TRUE if holds else Status.FALSE)
            continue
        is_known = train_edges(edge_of(atom))
        known, unknown = (
            (Status.DENIED, Status.NOT_KNOWN) if atom.negated else (Status.KNOWN, Status.PREDICTED)
        )
        assert atom.status is (known if is_known else unknown)
        assert (atom.probability is None) == is_known
        if not is_known:
            assert atom.probability == pytest.approx(edges(edge_of(atom)), abs=1e-6)
    satisfied = all(check.status in SATISFIED for check in reason.checks)
    assert satisfied == answer.known


@pytest.fixture(scope="module")
def edges(run):
    """The probability of an edge by names."""
    fitted = run._methods.fitting.edges(SILENT).probability
    names = run.vocabulary

    def probability(edge):
        head, relation, tail = edge
        rows = names.entity(head), names.relation(relation), names.entity(tail)
        return float(fitted.at(*(torch.tensor([row]) for row in rows)))

    return probability


@given(formula=any_formula)
@example(formula=parse("!(? = ?x & !friend_of(?, ?x))"))
@example(formula=parse("known_in(?, ?y) & !(friend_of(?, ?x) & !mentor_of(?x, ?))"))
@settings(max_examples=60, deadline=None)
def test_every_reason_is_right(run, train_edges, edges, formula):
    try:
        normalise(formula)
    except QueryError:
        assume(False)
    (answers,) = run.ask_each([formula], 6, explain=2)
    assume(not isinstance(answers, QueryError))
    for answer in answers:
        assert 1 <= len(answer.reasons) <= 2
        if not answer.known:
            assert answer.reasons[0].disjunct in normalise(formula)
        for reason in answer.reasons:
            check(answer, reason, train_edges, edges)
        values = [(r.disjunct, tuple(r.values.items())) for r in answer.reasons]
        assert len(set(values)) == len(values)


@pytest.mark.parametrize("formula", [FRIENDS, TOWNS, DENIAL])
@pytest.mark.parametrize("method", ["lmpnn", "search", "hybrid", "cqd-beam"])
def test_every_method_has_right_reasons(run, train_edges, edges, formula, method):
    (answers,) = run.ask_each([formula], 40, method=method, explain=3)
    if isinstance(answers, QueryError):
        assert method == "cqd-beam"
        return
    assert {answer.known for answer in answers} == {True, False}
    for answer in answers:
        for reason in answer.reasons:
            check(answer, reason, train_edges, edges)


def test_more_witnesses_are_more_reasons_and_the_best_stays_first(run):
    one, three = (run.ask(TOWNS, explain=count) for count in (1, 3))
    assert {len(answer.reasons) for answer in one} == {1}
    assert max(len(answer.reasons) for answer in three) == 3
    for short, long in zip(one, three, strict=True):
        assert short.reasons[0].truth == pytest.approx(long.reasons[0].truth)
    assert {answer.reasons for answer in run.ask(TOWNS)} == {()}


def test_many_questions_are_explained_like_one(run):
    for answers, question in zip(
        run.ask([FRIENDS, TOWNS], explain=2), (FRIENDS, TOWNS), strict=True
    ):
        alone = run.ask(question, explain=2)
        assert [a.reasons for a in answers] == [a.reasons for a in alone]


def test_the_table_has_a_line_for_each_condition(run):
    lines = cli("ask", run.folder.path, TOWNS, "-k", 3, "--explain").stdout.splitlines()
    answers = run.ask(TOWNS, 3, explain=1)
    assert len(lines) == 3 * 3
    for number, answer in enumerate(answers):
        title, *conditions = lines[3 * number : 3 * number + 3]
        assert answer.label in title
        assert [line.strip() for line in conditions] == answer.reasons[0].lines()


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_records_have_the_reasons(run, output):
    printed = cli(
        "ask", run.folder.path, TOWNS, "-k", 3, "--witnesses", 2, "--format", output
    ).stdout
    records = (
        json.loads(printed) if output == "json" else list(map(json.loads, printed.splitlines()))
    )
    answers = run.ask(TOWNS, 3, explain=2)
    expected = [[reason.to_json() for reason in answer.reasons] for answer in answers]
    assert [record["reasons"] for record in records] == json.loads(json.dumps(expected))
    for reason in (reason for record in records for reason in record["reasons"]):
        assert set(reason) == {"disjunct", "values", "truth", "atoms"}


def test_csv_has_the_reasons_as_json_in_one_column(run):
    given = ["ask", run.folder.path, TOWNS, "-k", 3, "--format", "csv"]
    rows = list(csv.DictReader(io.StringIO(cli(*given, "--witnesses", 2).stdout)))
    for row, answer in zip(rows, run.ask(TOWNS, 3, explain=2), strict=True):
        expected = [reason.to_json() for reason in answer.reasons]
        assert json.loads(row["reasons"]) == json.loads(json.dumps(expected))
    plain = list(csv.DictReader(io.StringIO(cli(*given).stdout)))
    assert "reasons" not in plain[0]


@pytest.mark.parametrize("options", [["--explain", "--witnesses", 2], []])
def test_reasons_are_drawn(run, tmp_path, options):
    file = tmp_path / "why.svg"
    cli("ask", run.folder.path, TOWNS, FRIENDS, "-k", 2, *options, "-o", file)
    drawing = file.read_text()
    assert drawing.startswith("<svg")
    assert run.ask(TOWNS, 1)[0].label in drawing


def test_a_formula_without_an_answer_is_no_error(run, tmp_path):
    file = tmp_path / "why.svg"
    formula = "? = person/ada_voss & ? != person/ada_voss"
    result = cli("ask", run.folder.path, formula, "--explain", "-o", file)
    assert result.stdout == ""
    assert "all 40 entities are ruled out" in result.stderr
    assert cli("ask", run.folder.path, formula, "--explain", "--json").stdout == "[]\n"
    assert run.ask(formula, explain=2) == []


def test_without_a_graph_nothing_can_be_explained(run):
    lost = dataclasses.replace(run, dataset=None)
    with pytest.raises(RunError, match=r"^explaining answers needs the graph of the run"):
        lost.ask(FRIENDS, explain=1)
    for method in ("search", "hybrid"):
        with pytest.raises(RunError, match=f"^{method} needs the graph of the run"):
            lost.ask(FRIENDS, method=method)
    assert len(lost.ask(FRIENDS)) == 10


def test_an_unknown_method_is_one_line(run):
    result = cli("ask", run.folder.path, FRIENDS, "--method", "serch", "--explain", code=2)
    assert "there is no method 'serch' to ask with; did you mean 'search'?" in result.stderr


def test_a_graph_that_is_given_explains_as_well(run, train_edges, edges):
    answers = run.ask(TOWNS, 5, graph=TOY / "dataset", explain=1)
    for answer in answers:
        for reason in answer.reasons:
            check(answer, reason, train_edges, edges)
