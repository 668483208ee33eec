"""Two methods on the same queries, and refusals if they are not the same."""

import json
import re
import subprocess
import sys

import duckdb
import numpy as np
import pytest

from lmpnn_kge.errors import RunError
from lmpnn_kge.methods.bootstrap import compare_paired
from lmpnn_kge.reports.comparison import compare_ranks
from lmpnn_kge.reports.paired_ranks import pair_ranks

from ..toy_runs import cli, train_tiny


def write(file, rows):
    """A file of ranks from rows (type, query, question, answer, rank)."""
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE t (type VARCHAR, query BIGINT, question VARCHAR, answer VARCHAR, "
            "missing INTEGER, rank DOUBLE, score DOUBLE, method VARCHAR)"
        )
        for row in rows:
            database.execute("INSERT INTO t VALUES (?, ?, ?, ?, 1, ?, 0.5, 'm')", row)
        database.execute(f"COPY t TO '{file}'")
    return file


def made_up(seed, queries=30):
    """Ranks of two types; each query has one to three answers."""
    generator, answers = np.random.default_rng(seed), np.random.default_rng(0)
    return [
        (
            name,
            query,
            f'r("{query}, {name}", ?)',
            f'answer "{answer}"',
            int(generator.integers(1, 40)),
        )
        for name in ("1p", "2in")
        for query in range(queries)
        for answer in range(answers.integers(1, 4))
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, toy_queries):
    """Two runs on the same queries and checkpoint."""
    folder = tmp_path_factory.mktemp("compared")
    train_tiny(toy_queries, folder / "one")
    train_tiny(toy_queries, folder / "two", epochs=1, seed=5)
    return folder


@pytest.mark.parametrize("endings", [("parquet", "parquet"), ("csv", "parquet"), ("csv", "csv")])
def test_files_are_joined_by_query_and_answer_in_any_order(tmp_path, endings):
    first, second = made_up(1), made_up(2)
    files = [
        write(tmp_path / f"{number}.{ending}", rows)
        for number, (ending, rows) in enumerate(zip(endings, (first, second[::-1]), strict=True))
    ]
    pairs = pair_ranks(*files)

    def slowly(rows):
        found = {}
        for name, query, _, _, rank in rows:
            found.setdefault(name, {}).setdefault(query, []).append(1 / rank)
        return {
            name: [sum(values) / len(values) for _, values in sorted(queries.items())]
            for name, queries in found.items()
        }

    for side, rows in ((pairs.first, first), (pairs.second, second)):
        assert {name: pytest.approx(values) for name, values in slowly(rows).items()} == {
            name: values.tolist() for name, values in side.items()
        }


def test_a_comparison_shows_the_means_and_the_interval(tmp_path):
    files = [write(tmp_path / f"{name}.csv", made_up(n)) for n, name in enumerate(["a", "b"])]
    comparison = compare_ranks(*files, resamples=500, seed=3)
    pairs = pair_ranks(*files)
    assert comparison.differences == compare_paired(pairs.first, pairs.second, 500, 3)
    table = comparison.to_table()
    assert table.header[1:3] == ["a.csv", "b.csv"]
    row = next(row for row in table.texts if row[0] == "1p")
    found = comparison.differences["1p"]
    assert row[1] == f"{100 * found.first:.1f}"
    assert float(row[3].replace("−", "-")) == pytest.approx(100 * found.value, abs=0.051)
    assert row[-1] == "30"


def test_only_a_difference_that_excludes_zero_is_marked(tmp_path):
    rows = made_up(1)
    better = [(*row[:4], 1) if row[0] == "1p" else row for row in rows]
    files = [write(tmp_path / name, rows) for name, rows in (("a.csv", rows), ("b.csv", better))]
    marks = {row[0]: row[-2] for row in compare_ranks(*files).to_table().texts}
    assert marks == {"": "", "1p": "*", "2in": ""}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: [r for r in rows if r[1] < 9], "they have 30 and 9 queries of the type 1p"),
        (lambda rows: [r for r in rows if r[0] == "1p"], r"queries of the types 1 \('2in'\)"),
        (
            lambda rows: [(*r[:2], r[2].replace("r(", "s("), *r[3:]) for r in rows],
            "they have other queries, such as 'r",
        ),
        (
            lambda rows: [(*r[:3], "other", r[4]) if r[3][-2] == "0" else r for r in rows],
            "the same query has other hard answers",
        ),
        (lambda rows: [*rows, rows[0]], "it has an answer twice"),
        (lambda rows: [(*rows[0][:4], 0.5), *rows[1:]], "1 rows have no rank of 1 or more"),
        (lambda rows: [], "it has no rows"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(tmp_path, change, words):
    rows = made_up(1)
    files = [write(tmp_path / "a.parquet", rows), write(tmp_path / "b.parquet", change(rows))]
    with pytest.raises(RunError, match=words):
        compare_ranks(*files)


def test_a_file_of_something_else_is_refused(tmp_path):
    ranks = write(tmp_path / "a.csv", made_up(1))
    (tmp_path / "b.csv").write_text("type,rank\n1p,1\n")
    with pytest.raises(RunError, match=r"b\.csv is not a file of ranks: it has no column query"):
        compare_ranks(ranks, tmp_path / "b.csv")
    (tmp_path / "b.parquet").write_text("nothing")
    with pytest.raises(RunError, match=r"b\.parquet is not a file of ranks: "):
        compare_ranks(ranks, tmp_path / "b.parquet")
    with pytest.raises(RunError, match=r"gone\.csv cannot be read: No such file"):
        compare_ranks(ranks, tmp_path / "gone.csv")


def test_two_runs_are_ranked_and_compared(runs):
    out = cli("report", "--compare", runs / "one", runs / "two", "-o", runs / "out").stdout
    assert "difference" in out
    assert "report.html" in out
    text = (runs / "out" / "report.md").read_text()
    assert text.startswith("# two compared with one\n")
    tested = json.loads((runs / "one" / "test.json").read_text())["types"]["1p"]["mrr"]
    assert re.search(rf"\| 1p +\| +{100 * tested:.1f} \|", text)


def test_a_file_of_a_run_gives_the_same_as_the_run(runs):
    file = runs / "two.csv"
    cli("evaluate", runs / "two", "--ranks", file)
    csv = ["--format", "csv"]
    by_file = cli("report", "--compare", runs / "one", file, *csv).stdout.splitlines()
    by_run = cli("report", "--compare", runs / "one", runs / "two", *csv).stdout.splitlines()
    assert by_file[1:] == by_run[1:]
    assert by_run[0] == ",one,two,difference,low,high,,queries"
    cli("evaluate", runs / "two", "--ranks", file, "--limit", 3)
    stderr = cli("report", "--compare", runs / "one", file, code=2).stderr
    assert "evaluate both with the same --limit on the same queries" in stderr


def test_a_comparison_is_a_section_of_a_report_on_runs(runs):
    cli("report", runs / "one", "--compare", runs / "one", runs / "two", "-o", runs / "both.md")
    text = (runs / "both.md").read_text()
    assert text.index("## two compared with one") < text.index("## Runs")


def test_files_are_compared_without_torch(tmp_path):
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name, made_up(1))
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from lmpnn_kge.cli import main\n"
        "main(['report', '--compare', 'a.csv', 'b.csv', '--format', 'latex'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\\end{tabular}\n")


def test_mistakes_are_one_line(runs):
    assert "give the folder of one or more runs, or --compare" in cli("report", code=2).stderr
    stderr = cli("report", runs / "one", "--format", "csv", "-o", "x", code=2).stderr
    assert "--format prints tables and writes no file" in stderr
    stderr = cli("evaluate", runs / "one", "--json", "--format", "csv", code=2).stderr
    assert "--json and --format csv contradict each other" in stderr


@pytest.mark.parametrize(
    ("format", "begin"), [("csv", ",1p,2p"), ("latex", r"\begin{tabular}"), ("markdown", "| ")]
)
def test_results_are_printed_in_every_form(runs, format, begin):
    out = cli("evaluate", runs / "one", "--format", format).stdout
    assert out.startswith(begin)
    assert cli("report", runs / "one", "--format", format).stdout.count("one") > 1
