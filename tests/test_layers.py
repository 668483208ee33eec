"""Imports follow the data: a module imports only from those before it in this list."""

import ast
from pathlib import Path

import pytest

from .conftest import ROOT

ORDER = [
    "errors",
    "kernels",
    "libkge",
    "libkge.options",
    "libkge.dataset",
    "checkpoint",
    "libkge.safe_load",
    "libkge.checkpoint",
    "libkge.model",
    "query",
    "query.formula",
    "query.parser",
    "query.patterns",
    "query.normal",
    "query.graph",
    "query.draw",
    "columns",
    "vocabulary",
    "sql",
    "answers",
    "safe_pickle",
    "betae_graph",
    "kg",
    "names",
    "whole",
    "splitting",
    "geonames",
    "geography",
    "store",
    "grounding",
    "sampling",
    "joining",
    "betae",
    "backbone",
    "libkge.writing",
    "hookspecs",
    "plugins",
    "opening",
    "against_libkge",
    "ranking",
    "material",
    "config",
    "device",
    "wiring",
    "network",
    "softmax",
    "loss",
    "batches",
    "evaluation",
    "results",
    "run_folder",
    "loop",
    "training",
    "run",
    "fuzzy",
    "clauses",
    "cqd",
    "baseline",
    "methods",
    "asking",
    "pretraining",
    "testing.outcome",
    "testing.forward",
    "testing.scores",
    "testing.files",
    "testing.learning",
    "testing.cost",
    "testing",
    "scaffold",
    "published",
    "run_record",
    "document",
    "tables",
    "plots",
    "report",
    "table_file",
    "table_plan",
    "table_report",
    "run_table",
    "demo",
    "",  # the package itself: the public names
    "cli.options",
    "cli.progress",
    "cli.answer",
    "cli.ask",
    "cli.backbones",
    "cli.config",
    "cli.demo",
    "cli.draw",
    "cli.evaluate",
    "cli.inspect",
    "cli.loaders",
    "cli.pretrain",
    "cli.queries",
    "cli.report",
    "cli.sample",
    "cli.split",
    "cli.table",
    "cli.train",
    "cli",
    "__main__",
]
PACKAGE = ROOT / "lmpnn_kge"


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path) -> set[str]:
    """The modules of this package that a file imports, `from lmpnn_kge import x` as x or ''."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "lmpnn_kge":
            found |= {name.name if name.name in ORDER else "" for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lmpnn_kge."):
            found.add(node.module.removeprefix("lmpnn_kge."))
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


def test_every_module_has_its_place():
    assert sorted(map(module_name, FILES)) == sorted(ORDER)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_module_imports_only_what_comes_before_it(path):
    place = ORDER.index(module_name(path))
    assert imports(path) <= set(ORDER[:place])


@pytest.mark.parametrize("path", sorted((ROOT / "plugins").glob("*.py")), ids=lambda p: p.stem)
def test_a_plugin_imports_from_the_root_of_the_package_only(path):
    assert imports(path) == {""}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_module_knows_an_embedding_model_by_name(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    words = {node.id for node in nodes if isinstance(node, ast.Name)}
    words |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    models = {"rescal", "transe", "distmult", "complex", "conve", "rotate"}
    models |= {"cp", "simple", "transh", "relational_tucker3", "relationaltucker3", "transformer"}
    assert models.isdisjoint(word.lower() for word in words)
