"""What README and CONTRIBUTING show is what happens."""

import ast
import re
import shlex
import subprocess

import click
import pytest
import torch
from click.testing import CliRunner

import lmpnn_kge
from lmpnn_kge import open_backbone
from lmpnn_kge.backbones import hookspecs
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.cli import main

from .conftest import ROOT
from .environments import Environment, build_wheel

README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
RESULTS = (ROOT / "docs" / "results.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def shell_lines(text: str) -> list[str]:
    """The commands of blocks that are not followed here."""
    return [line for block in blocks(text, "sh") for line in block.splitlines() if line]


#: Who runs them instead; make's targets are tried without running what CI runs anyway.
ELSEWHERE = {
    "pip install -c constraints.txt .": "test_install",
    ".venv/bin/lmpnn-kge ask demo/": "test_demo",
    "lmpnn-kge backbones new my-model": "test_scaffold",
    "lmpnn-kge backbones check my-model": "test_scaffold",
}


@pytest.mark.parametrize("line", shell_lines(README + CONTRIBUTING + RESULTS))
def test_every_other_command_is_run_elsewhere_or_needs_a_download(line):
    command, _, remark = line.partition("#")
    program, *arguments = shlex.split(command)
    if program == "make":
        run = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    elif "needs a download" in remark:
        name, *options = arguments
        command = main.get_command(click.Context(main), name)
        command.make_context(name, options)  # which fails where an option does not exist
    else:
        assert any(line.startswith(known) for known in ELSEWHERE), line


def test_the_readme_followed_literally(monkeypatch, tmp_path):
    """Commands and Python from top to bottom, in one folder: later ones use what earlier made."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")  # where the commands find the data
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for language, block in re.findall(
        r"^```(console|python)\n(.*?)^```", README, re.MULTILINE | re.DOTALL
    ):
        if language == "python":
            exec(block, names)
        else:
            follow(block)
    assert names["scores"].shape == (1, 40)
    assert len(names["best"]) == 3


def follow(block: str) -> None:
    """Run the commands of a block; the last one prints what is shown."""
    shown = [line for line in block.splitlines() if not line.startswith("$ ")]
    for line in block.splitlines():
        if line.startswith("$ "):
            program, *arguments = shlex.split(line.removeprefix("$ "))
            assert program == "lmpnn-kge"
            result = CliRunner().invoke(main, arguments)
            assert result.exit_code == 0, (line, result.output, result.exception)
    printed = [line.rstrip() for line in result.stdout.splitlines()]
    assert printed[: len(shown)] == shown


def test_the_plugin_of_the_guide_installs_and_loads(tmp_path):
    project = tmp_path / "lmpnn-kge-shift"
    project.mkdir()
    (project / "lmpnn_kge_shift.py").write_text(blocks(CONTRIBUTING, "python")[0])
    (project / "pyproject.toml").write_text(blocks(CONTRIBUTING, "toml")[0])
    environment = Environment(tmp_path / "venv")
    environment.install(build_wheel(ROOT, tmp_path / "core"))
    environment.install(build_wheel(project, tmp_path / "plugin"))
    row = environment.backbones(tmp_path)["shift"]
    assert (row["health"], row["distribution"]) == ("ok", "lmpnn-kge-shift 0.1")


def test_the_way_from_pykeen(tmp_path, monkeypatch):
    """The tables arrive as PyKEEN has them: the scores are its own."""
    pytest.importorskip("pykeen", reason="PyKEEN is not installed here")
    (block,) = blocks(README, "py")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(block, names)
    backbone = open_backbone("nations.safetensors")
    triples = names["result"].training.mapped_triples[:50]
    h, r, t = triples.T
    scores = backbone.score(backbone.entities[h], r, backbone.entities[t])
    theirs = names["result"].model.score_hrt(triples).detach().flatten()
    assert torch.allclose(scores, theirs, atol=1e-4)


def test_the_list_of_hooks_is_that_of_the_specifications():
    hooks = [name for name in vars(hookspecs) if name.startswith("lmpnn_kge_")]
    assert re.findall(r"^\| `(lmpnn_kge_\w+)\(", CONTRIBUTING, re.MULTILINE) == hooks


def test_the_names_of_the_guide_are_public():
    """Whatever plugins import in the guide and in `plugins/` is what may not change."""
    sources = [*blocks(CONTRIBUTING, "python"), *blocks(README, "python")]
    sources += [path.read_text() for path in (ROOT / "plugins").glob("*.py")]
    imported = {
        name.name
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == "lmpnn_kge"
        for name in node.names
    }
    assert {"Checkpoint", "hookimpl", "save_backbone"} <= imported <= set(lmpnn_kge.__all__)


def test_every_hook_and_every_point_of_the_contract_is_documented():
    hooks = [name for name in vars(hookspecs) if name.startswith("lmpnn_kge_")]
    contract = ["forward", "invert", "relation_width", "distance", "random_fields"]
    contract += ["from_libkge", "to_libkge", "entity_width", "distances", "project"]
    attributes = ["score_type", "formula", "inverse_formula", "libkge_models"]
    assert all(hasattr(Backbone, name) for name in contract)
    assert hooks
    for name in [*hooks, *contract, *attributes]:
        assert f"`{name}" in CONTRIBUTING


def test_every_file_of_the_package_has_a_job_in_the_guide():
    rooms = [path.parent.name for path in (ROOT / "lmpnn_kge").glob("*/__init__.py")]
    modules = [path.name for path in (ROOT / "lmpnn_kge").glob("[a-z]*.py")]
    for name in (*rooms, *modules):
        assert f"`{name}" in CONTRIBUTING, name
