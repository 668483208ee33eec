"""Imports follow the data: a room imports only from itself and from the rooms above it."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from .conftest import ROOT

#: The rooms in the order of the data; a single module at the root is a room of its own.
ROOMS = [
    "errors",
    "files",
    "work",
    "tracker",
    "processes",
    "notebook",
    "settings",
    "query",
    "graph",
    "queries",
    "device",
    "backbones",
    "plugin",
    "lmpnn",
    "methods",
    "search",
    "training",
    "runs",
    "reports",
    "tables",
    "tuning",
    "testing",
    "scaffold",
    "demo",
    "",  # the package itself: the public names
    "serve",
    "cli",
    "__main__",
]
#: Rooms that must work without torch, and what they may not import.
TORCH_FREE = {
    "errors", "files", "work", "tracker", "notebook", "settings", "query", "graph", "queries",
    "plugin", "reports", "",
}  # fmt: skip

PACKAGE = ROOT / "lmpnn_kge"
FILES = sorted(PACKAGE.rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins").glob("*.py"))


def module_name(path: Path) -> str:
    """`query.parser` for lmpnn_kge/query/parser.py, `query` for lmpnn_kge/query/__init__.py."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in FILES}


def room(module: str) -> str:
    return module.partition(".")[0]


def imported(path: Path) -> set[str]:
    """Every module that a file imports, at its top or inside a function, by its full name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def imports(path: Path) -> set[str]:
    """The modules of this package that a file imports; '' stands for its public names."""
    found = set()
    for name in imported(path):
        if name == "lmpnn_kge" or name.startswith("lmpnn_kge."):
            parts = name.split(".")[1:]
            while parts and ".".join(parts) not in MODULES:
                parts.pop()  # `from module import name` ends in a name
            found.add(".".join(parts))
    return found


def test_the_tests_mirror_the_rooms():
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert folders - {"plugins", "torture"} <= set(ROOMS)


def test_every_room_has_its_place():
    assert {room(module) for module in MODULES} == set(ROOMS)


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_from_the_rooms_above_it(module):
    above = ROOMS[: ROOMS.index(room(module)) + 1]
    assert {room(other) for other in imports(MODULES[module])} <= set(above)


def test_no_modules_import_each_other_in_a_circle():
    graph = {module: imports(path) - {module} for module, path in MODULES.items()}
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("module", MODULES)
def test_the_core_imports_no_plugin(module):
    names = {name.partition(".")[0] for name in imported(MODULES[module])}
    assert not [name for name in names if name.startswith("lmpnn_kge_")]


@pytest.mark.parametrize("module", [m for m in MODULES if room(m) in TORCH_FREE])
def test_a_room_without_torch_does_not_import_it(module):
    assert "torch" not in {name.partition(".")[0] for name in imported(MODULES[module])}


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: path.stem)
def test_a_plugin_imports_from_the_public_surface_only(path):
    assert imports(path) == {"plugin"}


@pytest.mark.parametrize(
    "module", [m for m in MODULES if "." not in m and MODULES[m].stem == "__init__"]
)
def test_a_room_says_in_its_first_line_what_it_holds(module):
    assert ast.get_docstring(ast.parse(MODULES[module].read_text()))


@pytest.mark.parametrize("module", MODULES)
def test_no_module_knows_an_embedding_model_by_name(module):
    nodes = list(ast.walk(ast.parse(MODULES[module].read_text())))
    words = {node.id for node in nodes if isinstance(node, ast.Name)}
    words |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    models = {"rescal", "transe", "distmult", "complex", "conve", "rotate"}
    models |= {"cp", "simple", "transh", "relational_tucker3", "relationaltucker3", "transformer"}
    assert models.isdisjoint(word.lower() for word in words)
