"""The commands as a user types them."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from lmpnn_kge import __version__
from lmpnn_kge.backbones.libkge.compare import _harmless
from lmpnn_kge.cli import main

from ..conftest import TOY
from ..libkge_files import content, save

CHECKPOINTS = TOY / "checkpoints"


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def inspect(name, *arguments, **options):
    return run("inspect", CHECKPOINTS / name, *arguments, **options)


def test_module_and_version():
    command = [sys.executable, "-m", "lmpnn_kge", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"lmpnn-kge, version {__version__}\n"


def test_backbones_as_a_table_of_one_line_each():
    lines = run("backbones").stdout.splitlines()
    assert lines[0].split()[:2] == ["name", "type"]
    assert "rotate" in lines[7]
    assert "−θ" in lines[7]
    assert all(line.split()[-1] == "ok" for line in lines[1:12])


def test_backbones_as_json():
    rows = {row["name"]: row for row in json.loads(run("backbones", "--json").stdout)}
    assert rows["conve"]["inverse"] is None
    assert rows["rescal"] == {
        "name": "rescal",
        "type": "inner product",
        "f": "hᵀ W",
        "inverse": "Wᵀ",
        "libkge_models": ["Rescal"],
        "health": "ok",
        "distribution": f"lmpnn-kge {__version__}",
    }


def test_inspect_a_package():
    facts = json.loads(inspect("transe-customsection.package.pt", "--json").stdout)
    assert facts == {
        "file": str(CHECKPOINTS / "transe-customsection.package.pt"),
        "kind": "LibKGE package",
        "model": "TransE",
        "reciprocal": False,
        "entities": 40,
        "relations": 6,
        "entity_width": 16,
        "relation_width": 16,
        "dataset": "toykg",
        "epoch": facts["epoch"],
        "validation": facts["validation"],
        "backbone": "transe",
        "type": "distance",
        "ids": True,
        "missing": [],
        "notes": [],
    }
    assert facts["validation"]["metric"] == "mean_reciprocal_rank_filtered_with_test"
    assert 0 < facts["validation"]["value"] < 1
    assert facts["validation"]["epoch"] == facts["epoch"] > 0


def test_inspect_a_training_checkpoint_says_which_folder_it_needs():
    output = inspect("rescal-reciprocal.train.pt").stdout
    assert "LibKGE training checkpoint" in output
    assert "Rescal, reciprocal" in output
    assert "40 of width 8" in output
    assert "6 of width 64" in output
    assert "the folder of toykg with entity_ids.del" in output


def test_inspect_with_the_folder_misses_nothing(toy_dataset):
    result = inspect("rescal.train.pt", "--dataset", toy_dataset, "--json")
    facts = json.loads(result.stdout)
    assert (facts["ids"], facts["missing"]) == (True, [])


def test_inspect_a_model_that_no_backbone_reads_says_so(tmp_path):
    output = inspect(save(tmp_path / "mine.pt", content("mine", "Mine"))).stdout
    assert "Mine, plain" in output
    assert "which no installed backbone reads" in output


def test_ranking_as_text_and_as_json(toy_dataset):
    arguments = ("rotate.package.pt", "--dataset", toy_dataset, "--rank", "test")
    ranking = json.loads(inspect(*arguments, "--json").stdout)["ranking"]
    assert list(ranking) == ["split", "mrr", "hits@1", "hits@3", "hits@10"]
    assert 0 <= ranking["hits@1"] <= ranking["hits@3"] <= ranking["hits@10"] <= 1
    assert f"test, filtered: MRR {ranking['mrr']:.4f}" in inspect(*arguments).stdout


def test_against_libkge_says_so_where_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "kge", None)
    assert "LibKGE is not importable" in inspect("rotate.train.pt", "--against-libkge").stdout
    facts = json.loads(inspect("rotate.train.pt", "--against-libkge", "--json").stdout)
    assert facts["against_libkge"]["available"] is False


def test_against_libkge_compares_where_it_is_installed():
    pytest.importorskip("kge", reason="LibKGE is not installed here")
    facts = json.loads(inspect("conve-reciprocal.train.pt", "--against-libkge", "--json").stdout)
    assert facts["against_libkge"]["largest_difference"] < 1e-4


def test_against_libkge_lets_a_file_import_nothing():
    options = {"model": "distmult", "modules": ["antigravity"], "import": ["distmult"]}
    assert _harmless(options) == {"model": "distmult", "import": ["distmult", "distmult"]}
    for change in ({"import": ["../../tmp/evil"]}, {"model": "a/b"}, {"model": None}):
        with pytest.raises(ValueError, match="it names a file"):
            _harmless(options | change)


def test_more_memory_than_there_is_is_one_line(tmp_path, toy_dataset):
    given = ["--backbone", "rescal", "--dataset", toy_dataset, "-o", tmp_path / "a.pt"]
    told = run("pretrain", *given, "--set", "dim=10000000", code=2).stderr
    assert told.startswith("Error: out of memory: ")
    assert told.endswith("; take a smaller dim, hidden or batch_size\n")
    assert not list(tmp_path.iterdir())


def test_a_name_that_no_file_can_have_is_one_line(toy_dataset):
    given = ["--backbone", "rescal", "--dataset", toy_dataset]
    assert run("pretrain", *given, "-o", "x" * 300, code=2).stderr.endswith("File name too long\n")


def test_a_bug_keeps_its_traceback(monkeypatch, toy_dataset):
    def broken(*arguments, **options):
        raise RuntimeError("a bug")

    monkeypatch.setattr("lmpnn_kge.graph.knowledge_graph.KnowledgeGraph.open", broken)
    arguments = ["answer", "--dataset", str(toy_dataset), "friend_of(?, ?x)"]
    assert isinstance(CliRunner().invoke(main, arguments).exception, RuntimeError)


def test_an_empty_backbone_name_is_a_mistake():
    assert "no backbone is called ''" in inspect("cp.package.pt", "--backbone", "", code=2).stderr


def test_a_narrow_locale_is_no_reason_to_fail():
    command = [sys.executable, "-m", "lmpnn_kge", "backbones"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "\\u2218" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rank", "test"], "--rank test needs --dataset DIR"),
        (["--dataset", "nowhere"], "nowhere is not a folder"),
        (["--backbone", "complx"], "did you mean 'complex'?"),
        (["--backbone", "complex"], "is a RotatE; backbone 'complex' reads ComplEx"),
        (["--dataset", TOY / "dataset", "--rank", "tset"], "did you mean 'test'?"),
        (["--dataset", TOY / "checkpoints"], "has neither dataset.yaml nor train.txt"),
    ],
)
def test_mistakes_are_one_line(arguments, words):
    stderr = inspect("rotate.package.pt", *arguments, code=2).stderr
    assert words in stderr
    assert stderr.count("\n") == 1
