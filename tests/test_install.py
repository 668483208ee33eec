"""The wheel, outside the checkout: alone, beside a third party's plugin, beside a broken one."""

import json
import zipfile

import pytest

from .conftest import ROOT, TOY
from .environments import Environment, build_wheel, run

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "1.2"
dependencies = ["lmpnn-kge"]

[project.entry-points."lmpnn_kge.backbones"]
{name} = "{module}"

[tool.hatch.build.targets.wheel]
only-include = ["{module}.py"]
"""

HALF = '''
"""A backbone of a third party: it halves what DistMult does."""

import torch
from lmpnn_kge import Backbone, ScoreType, hookimpl


class Half(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "½ h ∘ r"
    inverse_formula = "r"

    def forward(self, heads, relations):
        return torch.mul(heads, self.relations[relations]) / 2

    @staticmethod
    def invert(relations):
        return relations


@hookimpl
def lmpnn_kge_backbone():
    return Half
'''


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def environment(wheel, tmp_path):
    made = Environment(tmp_path / "venv")
    made.install(wheel)
    return made


def third_party(tmp_path, name, source):
    """A wheel of a distribution with one plugin module."""
    project = tmp_path / f"project-{name}"
    project.mkdir()
    names = {"distribution": f"lmpnn-kge-{name}", "module": f"lmpnn_kge_{name}", "name": name}
    (project / "pyproject.toml").write_text(PYPROJECT.format(**names))
    (project / f"{names['module']}.py").write_text(source)
    return build_wheel(project, project / "dist")


def test_the_wheel_holds_package_plugins_configs_and_nothing_else(wheel):
    files = set(zipfile.ZipFile(wheel).namelist())
    plugins = {path.name for path in (ROOT / "plugins").glob("*.py")}
    configs = {f"lmpnn_kge/{path.relative_to(ROOT)}" for path in ROOT.glob("configs/**/*.yaml")}
    assert plugins
    assert configs
    templates = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "lmpnn_kge/scaffold").rglob("*.txt")
    }
    assert templates
    assert files >= plugins | configs | templates
    page = {path.relative_to(ROOT).as_posix() for path in (ROOT / "lmpnn_kge/serve/page").iterdir()}
    assert "lmpnn_kge/serve/page/index.html" in page
    assert files >= page
    assert files >= {"lmpnn_kge/py.typed", "lmpnn_kge/reports/published.yaml"}
    assert {file.split("/")[0].split("-")[0] for file in files} == {
        "lmpnn_kge", *plugins
    }  # fmt: skip


def test_the_wheel_works_outside_the_checkout(environment, tmp_path):
    assert set(environment.backbones(tmp_path)) == {
        "complex", "conve", "cp", "distmult", "relational_tucker3", "rescal", "rotate", "simple",
        "transe", "transformer", "transh",
    }  # fmt: skip
    file = TOY / "checkpoints" / "rotate.train.pt"
    arguments = ("--dataset", str(TOY / "dataset"), "--rank", "test")
    assert "MRR" in environment.lmpnn_kge("inspect", str(file), *arguments, cwd=tmp_path)
    code = f"""from lmpnn_kge import open_backbone, save_backbone
save_backbone(open_backbone({str(file)!r}), "a.safetensors")"""
    run(environment.python, "-c", code, cwd=tmp_path)
    arguments = ("a.safetensors", *arguments)
    assert "MRR" in environment.lmpnn_kge("inspect", *arguments, cwd=tmp_path)
    loaders = json.loads(environment.lmpnn_kge("loaders", "--json", cwd=tmp_path))
    health = {loader["name"]: loader["health"] for loader in loaders}
    assert health == {"libkge": "ok", "safetensors": "ok"}


@pytest.mark.long
def test_third_party_plugins_are_listed_and_loaded_and_a_broken_one_is_contained(
    environment, tmp_path
):
    environment.install(third_party(tmp_path, "half", HALF))
    environment.install(third_party(tmp_path, "boom", "raise RuntimeError('no such luck')"))
    rows = environment.backbones(tmp_path)
    assert rows["half"]["health"] == "ok"
    assert rows["half"]["distribution"] == "lmpnn-kge-half 1.2"
    assert "lmpnn-kge-boom 1.2 is broken: RuntimeError: no such luck" in rows["boom"]["health"]
    assert rows["rotate"]["health"] == "ok"
    code = """from lmpnn_kge import backbone_class
print(backbone_class("half").random(5, 2, 4).score_heads([0], [1]).shape)"""
    assert "[1, 5]" in run(environment.python, "-c", code, cwd=tmp_path)
    table = environment.lmpnn_kge("backbones", cwd=tmp_path)
    assert "no such luck" in table
    assert "½ h ∘ r" in table
    file = str(TOY / "checkpoints" / "complex.package.pt")
    assert "complex (inner" in environment.lmpnn_kge("inspect", file, cwd=tmp_path)
