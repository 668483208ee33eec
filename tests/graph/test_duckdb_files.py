"""Files that DuckDB writes itself, on a system that refuses to write them."""

import subprocess
import sys

import pytest

from lmpnn_kge import FileError, KnowledgeGraph, QueryError
from lmpnn_kge.graph import duckdb_engine
from lmpnn_kge.graph.duckdb_files import reason, writing

from ..conftest import ROOT, TOY
from ..toy_runs import ROTATE

duckdb = pytest.importorskip("duckdb")
resource = pytest.importorskip("resource", reason="this system has no limits of files")

#: A command that may write files of some bytes only, which ends as on a full disk.
LIMITED = """
import resource, sys
from lmpnn_kge.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("size", "command"),
    [
        (600, ["split", ROOT / "tests" / "data" / "toy.tsv", "-o", "out", "--no-header"]),
        (50, ["predict", "--checkpoint", ROTATE, "--dataset", TOY / "dataset", "-o", "out.csv"]),
        (50, ["predict", "--checkpoint", ROTATE, "--dataset", TOY / "dataset", "-o", "x.parquet"]),
    ],
)
def test_a_file_that_grows_too_large_is_one_line(here, size, command):
    given = [sys.executable, "-c", LIMITED, str(size), *map(str, command)]
    done = subprocess.run(given, cwd=here, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "cannot be written: File too large" in done.stderr.splitlines()[-1]
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            'IO Error: Could not write file "/x/y": No space left on device',
            "No space left on device",
        ),
        (
            'IO Error: Async write failed: {"exception_type":"IO",'
            '"exception_message":"Could not write file \\"/x\\": No space left on device",'
            '"errno":"28"}',
            "No space left on device",
        ),
        ("IO Error: nobody knows", "IO Error: nobody knows"),
    ],
)
def test_the_reason_of_the_system_is_what_is_said(tmp_path, text, words):
    assert reason(duckdb.IOException(text)) == words
    with (
        pytest.raises(FileError, match=f"file cannot be written: {words}"),
        writing(tmp_path / "file"),
    ):
        raise duckdb.IOException(text)


def test_temporary_files_that_cannot_be_written_are_one_line(monkeypatch):
    def full(session, statement):
        raise duckdb.IOException('IO Error: Could not write file "/x": No space left on device')

    monkeypatch.setattr(duckdb_engine._Session, "fetch", full)
    graph = KnowledgeGraph.open(TOY / "dataset")
    cycle = "friend_of(?x, ?) & friend_of(?, ?y) & friend_of(?y, ?x)"
    with pytest.raises(QueryError, match="temporary files cannot be written: No space left"):
        graph.answer(cycle)
