"""`predict` on the command line: a table, files in five formats, and mistakes in one line."""

import csv
import io
import json

import duckdb
import pytest

import lmpnn_kge
from lmpnn_kge import KnowledgeGraph
from lmpnn_kge.cli import main
from lmpnn_kge.runs.predictions import FORMATS

from ..conftest import TOY
from ..toy_runs import ROTATE, CliRunner, cli, partials, train_tiny

GIVEN = ("--checkpoint", ROTATE, "--dataset", TOY / "dataset")
COLUMNS = ["head", "relation", "tail", "head_label", "tail_label", "probability", "confirmed"]


@pytest.fixture(scope="module")
def expected():
    return lmpnn_kge.predict(ROTATE, dataset=TOY / "dataset", limit=30)


def rows(file, format):
    reader = {"parquet": "read_parquet", "jsonl": "read_json"}.get(format, "read_csv")
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM {reader}(?)", [str(file)])
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "nt"])
def test_a_file_has_every_prediction(tmp_path, expected, format):
    file = tmp_path / f"out.{format}"
    stderr = cli("predict", *GIVEN, "-n", 30, "-o", file).stderr
    assert "30 predictions in " in stderr
    found = rows(file, format)
    assert [list(row) for row in found] == [list(expected.columns)] * 30
    for row, prediction in zip(found, expected, strict=True):
        assert row["probability"] == pytest.approx(prediction.probability, abs=1e-6)
        del row["probability"]
        assert row == {name: vars(prediction)[name] for name in row}
    assert not partials(tmp_path)


def test_n_triples_have_every_prediction(tmp_path, expected):
    pytest.importorskip("pyoxigraph", reason="the extra rdf is not installed")
    cli("predict", *GIVEN, "-n", 30, "-o", tmp_path / "out.nt")
    found = KnowledgeGraph.from_triples(tmp_path / "out.nt", valid=0, test=0)
    names = found.vocabulary
    triples = {
        (names.entity_ids[head], names.relation_ids[relation], names.entity_ids[tail])
        for head, relation, tail in found.triples("train").tolist()
    }
    assert triples == {(p.head, p.relation, p.tail) for p in expected}


def test_a_file_can_have_any_ending_if_the_format_is_given(tmp_path, expected):
    cli("predict", *GIVEN, "-n", 30, "-o", tmp_path / "out.txt", "--format", "tsv")
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert lines[0].split("\t") == list(expected.columns)
    assert len(lines) == 31
    error = cli("predict", *GIVEN, "-o", tmp_path / "out.txt2", code=2).stderr
    assert "does not end in one of .csv, .tsv, .jsonl, .parquet" in error
    assert not (tmp_path / "out.txt2").exists()


def test_an_empty_file_has_its_columns(tmp_path, expected):
    for format in ("csv", "parquet"):
        file = tmp_path / f"out.{format}"
        cli("predict", *GIVEN, "--min-probability", 1, "-o", file)
        assert rows(file, format) == []
    assert (tmp_path / "out.csv").read_text().strip() == ",".join(expected.columns)


def test_the_terminal_gets_a_table(expected):
    lines = cli("predict", *GIVEN, "-n", 30).stdout.splitlines()
    assert len(lines) == 30
    for line, prediction in zip(lines, expected, strict=True):
        assert line.startswith(f"{prediction.probability:.3f}  {prediction}")
        mark = prediction.confirmed
        assert line.endswith(f"confirmed by {mark}") if mark else "confirmed" not in line


def test_the_terminal_gets_other_formats_on_demand(expected):
    text = cli("predict", *GIVEN, "-n", 30, "--format", "csv").stdout
    assert [row["tail"] for row in csv.DictReader(io.StringIO(text))] == [p.tail for p in expected]
    lines = cli("predict", *GIVEN, "-n", 30, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["head"] for line in lines] == [p.head for p in expected]


def test_a_choice_can_be_repeated():
    chosen = ["--relation", "friend_of", "--relation", "mentor_of", "--head", "person/ada_voss"]
    text = cli("predict", *GIVEN, *chosen, "--any", "--format", "csv", "-n", 1000).stdout
    found = list(csv.DictReader(io.StringIO(text)))
    assert {row["relation"] for row in found} == {"friend_of", "mentor_of"}
    assert {row["head"] for row in found} == {"person/ada_voss"}


def test_a_run_knows_its_checkpoint_and_graph(tmp_path, toy_queries):
    train_tiny(toy_queries, tmp_path / "run")
    found = cli("predict", tmp_path / "run", "-n", 5).stdout
    assert found == cli("predict", *GIVEN, "-n", 5).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give a RUN or a --checkpoint FILE"),
        (["run", "--backbone", "rotate"], "--backbone does not apply to a RUN"),
        (["gone"], "gone does not exist"),
        ([*GIVEN, "--format", "parquet"], "needs -o FILE"),
        ([*GIVEN, "--format", "table", "-o", "x.csv"], "a table is for the terminal"),
        ([*GIVEN, "--relation", "friend_off"], "did you mean 'friend_of'"),
        ([*GIVEN, "--head", "nobody"], "there is no entity 'nobody'"),
        ([*GIVEN, "--tail", "nobody"], "there is no entity 'nobody'"),
        ([*GIVEN, "-n", "0"], "--limit"),
        ([*GIVEN, "--min-probability", "2"], "--min-probability"),
        ([*GIVEN, "-o", "/dev/null/out.csv"], "cannot be written"),
    ],
)
def test_mistakes_are_one_line(here, arguments, words):
    assert words in cli("predict", *arguments, code=2).stderr


def test_a_graph_without_valid_triples_is_one_line(tmp_path):
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text("a\tr\tb\n" if split == "train" else "")
    backbone = lmpnn_kge.backbone_class("transe").random(
        2, 1, 4, entity_ids=["a", "b"], relation_ids=["r"]
    )
    lmpnn_kge.save_backbone(backbone, tmp_path / "b.safetensors")
    given = ["--checkpoint", tmp_path / "b.safetensors", "--dataset", tmp_path]
    assert "there are no valid triples" in cli("predict", *given, code=2).stderr


def test_an_interrupt_leaves_no_file(tmp_path, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("lmpnn_kge.search.edges.EdgeProbability.logits", interrupt)
    (tmp_path / "out.csv").write_text("older")
    arguments = ["predict", *map(str, GIVEN), "-o", str(tmp_path / "out.csv")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "Aborted" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "older"
