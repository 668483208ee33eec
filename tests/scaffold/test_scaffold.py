"""A new backbone from the scaffold: it works as it is written, with no change to the core."""

import importlib
import json
import re
import sys

import pytest
from click.testing import CliRunner

from lmpnn_kge import Backbone, PluginError
from lmpnn_kge.cli import main
from lmpnn_kge.scaffold import write_scaffold
from lmpnn_kge.testing import CHECKS, make_subject

from ..conftest import ROOT
from ..environments import Environment, build_wheel, run

FILES = {".gitignore", "README.md", "pyproject.toml"}


def new(*arguments, code=0):
    result = CliRunner().invoke(main, ["backbones", "new", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize("score_type", ["inner-product", "distance"])
@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("my-model", "MyModel"),
        ("model2", "Model2"),
        ("a-2b", "A2b"),
        ("none", "NoneModel"),
        ("backbone", "BackboneModel"),
        ("import", "Import"),
        ("backbone-tests", "BackboneTestsModel"),
    ],
)
def test_what_is_written_passes_the_kit(here, monkeypatch, name, class_name, score_type):
    new(name, "--type", score_type)
    folder, word = here / f"lmpnn-kge-{name}", name.replace("-", "_")
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert files == FILES | {f"lmpnn_kge_{word}.py", f"tests/test_{word}.py"}
    assert not any("$" in (folder / file).read_text() for file in files)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(folder / "tests")
    tests = getattr(importlib.import_module(f"test_{word}"), f"Test{class_name}")()
    model = tests.backbone
    for module in (f"lmpnn_kge_{word}", f"test_{word}"):
        del sys.modules[module]
    assert issubclass(model, Backbone)
    assert model.__name__ == class_name
    assert model.score_type.value == score_type.replace("-", " ")
    subject = make_subject(model, phi=tests.phi)
    found = [check.on(subject) for check in CHECKS if check.name not in ("learns", "speed")]
    assert [str(outcome) for outcome in found if outcome.status == "failed"] == []
    skipped = {outcome.name for outcome in found if outcome.status == "skipped"}
    assert skipped <= {"checkpoint", "distance"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("My_Model", "starting with a letter, such as 'my-model'"),
        ("2fast", "such as 'fast'"),
        ("a b", "such as 'a-b'"),
        ("", "'' is not a valid name for a backbone"),
        ("../up", "such as 'up'"),
        ("x" * 41, "at most 40 lower-case letters"),
        ("é", "'é' is not a valid name for a backbone"),
        ("a\n", "such as 'a'"),
        ("lmpnn-kge-x", "leave lmpnn-kge out of the name"),
        ("rotate", "a backbone 'rotate' is installed by lmpnn-kge"),
        ("elsewhere", "a module lmpnn_kge_elsewhere is installed"),
    ],
)
def test_a_name_that_cannot_be_is_one_line_and_writes_nothing(here, monkeypatch, name, words):
    (here / "path").mkdir()
    (here / "path" / "lmpnn_kge_elsewhere.py").touch()
    monkeypatch.syspath_prepend(here / "path")
    stderr = new("--", name, code=2).stderr
    assert words in stderr
    assert stderr.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["path"]


def test_a_folder_that_holds_something_is_left_alone(here):
    (here / "taken").mkdir()
    (here / "taken" / "file").write_text("mine")
    stderr = new("mine", "-o", "taken", code=2).stderr
    assert stderr == "Error: taken exists and holds something else; name a new folder\n"
    assert [path.name for path in here.rglob("*")] == ["taken", "file"]
    (here / "empty").mkdir()
    new("mine", "--out", "empty")
    assert (here / "empty" / "lmpnn_kge_mine.py").exists()


def test_into_is_the_old_name_of_out(here):
    new("mine", "--into", "folder")
    assert (here / "folder" / "lmpnn_kge_mine.py").exists()
    assert "--into" not in new("--help").output


def test_a_model_is_libkges_only_if_the_user_says_so(here):
    new("mine", "-o", "a")
    new("mine", "-o", "b", "--libkge-model", "Mine")
    plain, named = ((here / folder / "lmpnn_kge_mine.py").read_text() for folder in "ab")
    assert "libkge_models" not in plain
    line = '    libkge_models = ("Mine",)\n'
    assert line in named
    assert named.replace(line, "") == plain
    readme = (here / "a" / "README.md").read_text()
    assert "lmpnn-kge pretrain --backbone mine --dataset DIR -o mine.safetensors" in readme
    assert "is not the name of a class" in new("other", "--libkge-model", "a b", code=2).stderr


def test_what_is_written_imports_from_the_public_surface_for_plugins(here):
    new("mine")
    text = (here / "lmpnn-kge-mine" / "lmpnn_kge_mine.py").read_text()
    assert "from lmpnn_kge.plugin import Backbone, ScoreType, hookimpl\n" in text


def test_nothing_is_half_written(here, monkeypatch):
    monkeypatch.setattr("lmpnn_kge.scaffold.TEMPLATES", here / "nowhere")
    assert "cannot be written" in new("mine", code=2).stderr
    assert list(here.iterdir()) == []


def test_an_unknown_type_of_score_is_refused(here):
    with pytest.raises(PluginError, match="choose from: distance, inner-product"):
        write_scaffold("mine", "product")


@pytest.mark.long
def test_from_the_scaffold_to_a_trained_network_without_a_change_to_the_core(tmp_path):
    """In an environment of its own: written, installed, listed, checked, pretrained, trained."""
    environment = Environment(tmp_path / "venv")
    environment.install(build_wheel(ROOT, tmp_path / "core"))
    environment.lmpnn_kge("backbones", "new", "my-model", "--type", "distance", cwd=tmp_path)
    project = tmp_path / "lmpnn-kge-my-model"
    environment.install(build_wheel(project, tmp_path / "plugin"))

    row = environment.backbones(tmp_path)["my-model"]
    assert (row["health"], row["distribution"]) == ("ok", "lmpnn-kge-my-model 0.1.0")
    checked = environment.lmpnn_kge("backbones", "check", "my-model", "--json", cwd=tmp_path)
    assert json.loads(checked)["passed"]
    tested = run(
        environment.python, "-m", "pytest", "-p", "no:cacheprovider", "-k", "shapes or test_phi",
        cwd=project,
    )  # fmt: skip
    assert re.search(r"\d+ passed", tested)

    code = "from lmpnn_kge.graph.geography import write_geography; write_geography('geography')"
    run(environment.python, "-c", code, cwd=tmp_path)
    command = environment.lmpnn_kge
    graph = ("--dataset", "geography")
    command("pretrain", "--backbone", "my-model", *graph, "-o", "mine.safetensors", "--set",
            "dim=16", "--epochs", "2", cwd=tmp_path)  # fmt: skip
    command("sample", *graph, "--types", "1p,2in", "--count", "50", "--out", "queries",
            cwd=tmp_path)  # fmt: skip
    printed = command("train", "--checkpoint", "mine.safetensors", *graph, "--queries", "queries",
                      "--config", "tiny", "--epochs", "1", "--out", "run",
                      cwd=tmp_path)  # fmt: skip
    assert "1p" in printed
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["backbone"] == "my-model"
