"""`lmpnn-kge ask` with one question, several, and a file of them."""

import csv
import io
import json
import math

import pytest
from click.testing import CliRunner

from lmpnn_kge import Answer, Run
from lmpnn_kge.cli import main
from lmpnn_kge.cli.ask import COLUMNS
from lmpnn_kge.runs.answer import AnswerList

from ..toy_runs import cli, train_tiny

FRIENDS = "friend_of(person/sven_ekdal, ?)"
PLACES = "known_in(person/ada_voss, ?)"
WRONG = "friend_of(person/ada_vos, ?)"


@pytest.fixture(scope="module")
def run(tmp_path_factory, toy_queries) -> Run:
    return train_tiny(toy_queries, tmp_path_factory.mktemp("asked") / "run")


@pytest.fixture
def questions(tmp_path):
    file = tmp_path / "questions.txt"
    file.write_text(f"\ufeff# friends\n{FRIENDS}\n\n  {PLACES}  \n", encoding="utf-8")
    return file


def test_several_questions_have_a_table_each(run, questions):
    printed = cli("ask", run.folder.path, FRIENDS, PLACES, "-k", 3).stdout
    first, second, rest = printed.split("\n\n")
    for table, question in ((first, FRIENDS), (second, PLACES)):
        title, *lines = table.splitlines()
        assert title == question
        answers = run.ask(question, 3)
        assert len(lines) == 3
        for line, answer in zip(lines, answers, strict=True):
            assert line.startswith(f"  {answer.figure:>6}  {answer.label}")
            assert line.endswith(f"{answer.mark}  ({answer.id})")
    assert rest == ""
    assert cli("ask", run.folder.path, "-f", questions, "-k", 3).stdout == printed


def test_questions_come_from_standard_input(run, questions):
    result = CliRunner().invoke(
        main, ["ask", str(run.folder.path), "-f", "-", "-k", "3"], input=questions.read_text()
    )
    assert result.exit_code == 0, result.output
    assert result.stdout == cli("ask", run.folder.path, "-f", questions, "-k", 3).stdout


def test_records_carry_their_question(run):
    given = ["ask", run.folder.path, FRIENDS, PLACES, "-k", 2]
    records = json.loads(cli(*given, "--format", "json").stdout)
    assert [record["question"] for record in records] == [FRIENDS] * 2 + [PLACES] * 2
    assert records == json.loads(cli(*given, "--json").stdout)
    assert records == list(map(json.loads, cli(*given, "--format", "jsonl").stdout.splitlines()))
    rows = list(csv.DictReader(io.StringIO(cli(*given, "--format", "csv").stdout)))
    texts = [
        {k: "" if record[k] is None else str(record[k]) for k in COLUMNS} for record in records
    ]
    assert rows == texts
    best = run.ask([FRIENDS, PLACES], 2)[0][0]
    assert records[0] == {"question": FRIENDS, **vars(best), "mark": best.mark, "reasons": []}


def test_a_score_that_json_cannot_write_is_null(run, monkeypatch):
    infinite = AnswerList(FRIENDS, [Answer("m1", "Rome", -math.inf)])
    monkeypatch.setattr(Run, "ask_each", lambda *_, **__: [infinite])
    printed = cli("ask", run.folder.path, FRIENDS, "--json").stdout
    assert [record["score"] for record in json.loads(printed)] == [None]
    assert "Infinity" not in printed


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "csv"])
def test_a_wrong_line_says_its_number_and_loses_no_other(run, questions, output):
    right = cli("ask", run.folder.path, "-f", questions, "--format", output).stdout
    questions.write_text(f"# friends\n{FRIENDS}\n{WRONG}\n{PLACES}\nno formula\n")
    result = cli("ask", run.folder.path, "-f", questions, "--format", output, code=1)
    assert result.stdout == right
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert errors[0].startswith("Error: line 3: there is no entity 'person/ada_vos'; did you mean")
    assert errors[1].startswith("Error: line 5: expected ( after a relation")
    assert f"{WRONG}\n{' ' * 10}^\n" in result.stderr


def test_one_of_several_arguments_is_named_by_its_number(run):
    result = cli("ask", run.folder.path, FRIENDS, WRONG, code=1)
    assert "Error: question 2: there is no entity" in result.stderr
    assert FRIENDS in result.stdout


def test_notes_name_the_line_they_are_about(run, questions):
    questions.write_text("\nlives_in(?, person/ada_voss)\n")
    note = "no edge lives_in(?, person/ada_voss) is known"
    assert f"note: line 2: {note}\n" in cli("ask", run.folder.path, "-f", questions).stderr
    alone = cli("ask", run.folder.path, "lives_in(?, person/ada_voss)")
    assert alone.stderr == f"note: {note}\n"


def test_candidates_are_all_those_of_a_type_or_any(run):
    formula = "lives_in(person/ada_voss, ?)"
    everything = ["ask", run.folder.path, formula, "-k", 40, "--format", "jsonl"]
    ids = {
        option: [json.loads(line)["id"] for line in cli(*everything, *option).stdout.splitlines()]
        for option in ((), ("--typed",), ("--any",))
    }
    towns = set(run.graph.answer("lives_in(?x, ?)", "train"))
    assert set(ids[("--typed",)]) == towns
    assert ids[()][: len(towns)] == ids[("--typed",)]
    assert sorted(ids[()]) == sorted(ids[("--any",)])
    assert [id_ for id_ in ids[("--any",)] if id_ in towns] == ids[("--typed",)]


def test_another_method_can_be_asked(run):
    given = ["ask", run.folder.path, FRIENDS, "--format", "jsonl"]
    records = list(map(json.loads, cli(*given, "--method", "cqd-beam").stdout.splitlines()))
    assert [record["id"] for record in records] == [
        answer.id for answer in run.ask(FRIENDS, method="cqd-beam")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one or more formulas, or a file of them with -f FILE"),
        ([FRIENDS, "-f", "questions.txt"], "give one or more formulas"),
        ([FRIENDS, "--json", "--format", "csv"], "--json and --format csv contradict each other"),
        (
            [FRIENDS, "--method", "cqd-bean"],
            "did you mean 'cqd-beam'? choose from: cqd-beam, hybrid",
        ),
        (["-f", "empty.txt"], "empty.txt has no formula"),
        (["-f", "bytes.txt"], "bytes.txt cannot be read"),
        (["-f", "gone.txt"], "gone.txt"),
    ],
    ids=str,
)
def test_mistakes_are_one_line(run, questions, monkeypatch, arguments, message):
    monkeypatch.chdir(questions.parent)
    (questions.parent / "empty.txt").write_text("# nothing\n\n")
    (questions.parent / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    assert message in cli("ask", run.folder.path, *arguments, code=2).stderr


SPARQL = "SELECT ?a {\n  <person/sven_ekdal> <friend_of> ?a\n} LIMIT 4"


def test_a_picture_of_reasons_replaces_an_older_one(run, tmp_path):
    file = tmp_path / "new" / "why.svg"
    for question in (FRIENDS, PLACES):
        cli("ask", run.folder.path, question, "-k", 1, "-o", file)
    assert "known in" in file.read_text()


def test_a_picture_that_cannot_be_written_is_refused_before_the_questions(run, tmp_path):
    (tmp_path / "file").touch()
    stderr = cli("ask", run.folder.path, WRONG, "-o", tmp_path / "file" / "x.svg", code=2).stderr
    assert "x.svg cannot be written" in stderr


def test_a_sparql_query_is_asked_like_its_formula(run, tmp_path):
    pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    (tmp_path / "friends.rq").write_text(SPARQL)
    printed = cli("ask", run.folder.path, FRIENDS, "-k", 4).stdout
    assert cli("ask", run.folder.path, SPARQL).stdout == printed
    assert cli("ask", run.folder.path, "-f", tmp_path / "friends.rq").stdout == printed
    fewer = cli("ask", run.folder.path, SPARQL, "-k", 2).stdout
    assert fewer == cli("ask", run.folder.path, FRIENDS, "-k", 2).stdout


def test_each_question_has_as_many_answers_as_its_limit(run):
    pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    asked = run.ask([SPARQL, FRIENDS, SPARQL.replace("4", "1")])
    assert [len(answers) for answers in asked] == [4, 10, 1]
    assert len(run.rank(SPARQL)) == 4


def test_a_sparql_query_about_an_unknown_name_has_no_column(run):
    pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    result = cli("ask", run.folder.path, SPARQL.replace("sven_ekdal", "sven_ekdall"), code=2)
    assert "did you mean 'person/sven_ekdal'" in result.stderr
    assert "column" not in result.stderr
