"""From nothing to answers."""

import re
import shlex
import shutil

import pytest

from lmpnn_kge import backbone_class, demo
from lmpnn_kge.query.patterns import BETAE
from lmpnn_kge.runs import inputs
from lmpnn_kge.runs import pretrain as pretraining
from lmpnn_kge.runs.train import train
from lmpnn_kge.settings.files import load_config, load_settings

from .test_docs import README, shell_lines
from .toy_runs import cli, sample_few


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """The same way with less to learn."""

    def few(kind, names, settings=None):
        return load_settings(kind, names, {**(settings or {}), "dim": 16, "epochs": 3})

    monkeypatch.setattr(pretraining, "load_settings", few)
    monkeypatch.setattr(
        demo,
        "train",
        lambda *arguments, **options: train(*arguments, settings={"epochs": 1}, **options),
    )
    assert load_config("tiny").epochs > 1
    monkeypatch.setattr(
        inputs,
        "sample_store",
        lambda graph, folder, **options: sample_few(graph, folder, 20, BETAE),
    )


def times(folder):
    """When each file was written that a second demonstration must not write again."""
    runs = [*folder.rglob("*.safetensors"), *folder.glob("demo/run-*/*.json")]
    return {path: path.stat().st_mtime_ns for path in runs}


def test_a_demonstration_goes_the_whole_way_and_is_not_repeated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = cli("demo")
    assert "MRR on test queries" in first.stdout
    for method in ("LMPNN", "search", "hybrid", "frequency"):
        rows = [line for line in first.stdout.splitlines() if re.match(rf"{method} +\d", line)]
        assert len(rows) == 2, "types without and with negation"
    assert "frequency ranks entities" in first.stdout
    assert re.search(r"^ +\d+\.\d%  ", first.stdout, re.MULTILINE), "probabilities"
    assert re.search(r"Why .*\?\n  (known|predicted \S+) +capital\(", first.stdout)
    for question, formula in demo.QUESTIONS.items():
        assert question in first.stdout
        assert formula in first.stdout
    assert "lmpnn-kge ask demo/run-" in first.stdout
    report = (tmp_path / "demo" / "report" / "report.md").read_text()
    for words in ("| run-complex, hybrid ", "## Probabilities", "](report-why.svg)"):
        assert words in report
    picture = (tmp_path / "demo" / "why.svg").read_text()
    assert picture == (tmp_path / "demo" / "report" / "report-why.svg").read_text()
    assert "Brazil" in picture
    before = times(tmp_path)
    assert {"hybrid.json", "edges.json", "test-search.json"} <= {path.name for path in before}
    second = cli("demo")
    assert "epoch" not in second.stderr
    assert "fitting" not in second.stderr
    assert second.stdout == first.stdout
    assert times(tmp_path) == before
    asked = [line for line in shell_lines(README) if " ask demo/" in line]
    assert asked
    for line in asked:  # what README asks of the demonstration
        assert "predicted" in cli(*shlex.split(line)[1:]).stdout


@pytest.mark.long
def test_what_is_damaged_is_made_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = tmp_path / "demo" / "geography-distmult.pt"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"half a checkpoint")
    cli("demo", "--backbone", "distmult")
    assert checkpoint.stat().st_size > 1000


@pytest.mark.long
def test_a_backbone_that_libkge_has_not_goes_the_whole_way(tmp_path, monkeypatch):
    monkeypatch.setattr(backbone_class("distmult"), "libkge_models", ())
    monkeypatch.chdir(tmp_path)
    output = cli("demo", "--backbone", "distmult").stdout
    assert "inspect demo/geography-distmult.safetensors" in output


def test_an_unknown_backbone_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "distmult" in cli("demo", "--backbone", "distmul", code=2).stderr


@pytest.mark.long
def test_a_damaged_graph_and_lost_or_damaged_queries_are_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "sample_store", inputs.sample_store)
    first = demo.demonstrate(tmp_path, "distmult")
    data = tmp_path / "data"
    queries = data / "geography-queries"

    def cut():
        file = data / "geography" / "train.del"
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 9])

    def scramble():
        file = queries / "test" / "1p.hard.values.npy"
        content = file.read_bytes()
        file.write_bytes(content[:128] + content[128:][::-1])

    for damage in (cut, scramble, lambda: shutil.rmtree(queries)):
        damage()
        assert demo.demonstrate(tmp_path, "distmult").results == first.results
