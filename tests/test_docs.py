"""What README, CONTRIBUTING and docs/ show is what happens."""

import ast
import re
import shlex
import subprocess

import pytest
import torch
import yaml

import lmpnn_kge
import lmpnn_kge.plugin
from lmpnn_kge import open_backbone
from lmpnn_kge.backbones import hookspecs
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.query.patterns import NAMED

from .conftest import ROOT
from .environments import Environment, build_wheel
from .pages import (
    CONTRIBUTING,
    DOCS,
    README,
    Reader,
    blocks,
    check_options,
    joined,
    missing_extra,
    shell_lines,
)

PAGES = {"README.md": README, **DOCS}

#: Who runs them instead; make's targets are tried without running what CI runs anyway.
ELSEWHERE = {
    "pip install -c constraints.txt .": "test_install",
    ".venv/bin/lmpnn-kge ask demo/": "test_demo",
    "lmpnn-kge backbones new my-model": "test_scaffold",
    "lmpnn-kge backbones check my-model": "test_scaffold",
    "lmpnn-kge serve runs/": "serve/test_server",
    "curl ": "serve/test_server",
    "printf ": "serve/test_server",
}

SHELL = shell_lines("\n".join([*PAGES.values(), CONTRIBUTING]))


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    return Reader(tmp_path_factory.mktemp("reader"))


@pytest.mark.parametrize("line", SHELL)
def test_every_other_command_is_run_elsewhere_or_needs_a_download(line):
    command, _, remark = line.partition("#")
    program, *arguments = shlex.split(command)
    if program == "make":
        run = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    elif "needs a download" in remark:
        check_options(command.partition(" > ")[0])
    else:
        assert any(line.startswith(known) for known in ELSEWHERE), line


@pytest.mark.parametrize("page", PAGES)
def test_a_page_followed_literally(page, reader, monkeypatch):
    """Commands and Python from top to bottom, in one folder: later ones use what earlier made."""
    opening = PAGES[page].split("\n## ")[0]
    if extra := missing_extra(opening):
        pytest.skip(f"the extra {extra} is not installed")
    names = reader.follow(page, PAGES[page], monkeypatch)
    if page == "python.md":
        assert names["scores"].shape == (1, 40)
        assert len(names["best"]) == 3


def test_the_jobs_for_clusters_have_options_that_exist():
    (script,), (job,) = (blocks(DOCS["distributed.md"], name) for name in ("bash", "yml"))
    (line,) = (line for line in joined(script) if line.startswith("srun "))
    check_options(line.removeprefix("srun ").replace("$SLURM_NNODES", "2"))
    _, pods = yaml.safe_load_all(job)
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    check_options(shlex.join([*container["command"], *container["args"]]))


@pytest.mark.parametrize("page", PAGES)
def test_what_is_shown_fits_80_columns(page):
    shown = re.findall(r"^```\w+\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)
    assert [line for block in shown for line in block.splitlines() if len(line) > 80] == []


def test_the_readme_is_short_and_links_every_page():
    assert len(README.splitlines()) <= 220
    for page in DOCS:
        assert f"](docs/{page})" in README


@pytest.mark.parametrize("page", DOCS)
def test_a_page_begins_with_a_sentence_that_says_what_it_is_for(page):
    title, sentence = PAGES[page].split("\n\n")[:2]
    assert re.fullmatch(r"# [^\n]+", title)
    assert re.fullmatch(r"This page [^.]+\.", sentence)


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_every_link_to_another_page_leads_somewhere(page):
    folder = ROOT / "docs" if page in DOCS else ROOT
    text = PAGES.get(page, CONTRIBUTING)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if not target.startswith("http"):
            file, _, heading = target.partition("#")
            if file.endswith(".png"):
                assert (folder / file).is_file()
                continue
            linked = (folder / file).read_text() if file else text
            assert heading in {"", *map(anchor, re.findall(r"^#+ (.*)", linked, re.MULTILINE))}


def anchor(heading: str) -> str:
    """The name by which GitHub links a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_public_name_is_documented():
    rows = re.findall(r"^\| `(\w+)[^|]*\| ([^|]+) \|$", DOCS["python.md"], re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(lmpnn_kge.__all__)


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_no_page_teaches_a_name_that_warns(page):
    for name in lmpnn_kge._RENAMED:
        assert name not in PAGES.get(page, CONTRIBUTING)


@pytest.mark.parametrize("page", ["README.md", "queries.md"])
def test_the_examples_of_the_language_are_formulas(page):
    table = PAGES[page][PAGES[page].index("| write | meaning |") :].split("\n\n")[0]
    formulas = re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)
    assert len(formulas) == 8
    for formula in formulas:
        lmpnn_kge.parse(formula.replace("\\|", "|"))


def test_every_query_type_is_documented():
    for name, pattern in NAMED.items():
        escaped = pattern.replace("|", "\\|")
        assert f"| `{name}` | `{escaped}` |" in DOCS["queries.md"]


def test_every_file_of_a_run_a_table_and_a_store_is_documented(reader, monkeypatch):
    reader.follow("files", DOCS["tables-and-reports.md"], monkeypatch)
    folder, text = reader.folder / "files", DOCS["files.md"]
    files = [*(folder / "run").iterdir(), *(folder / "tables").glob("*/*.json")]
    files += [*(folder / "queries").glob("*.json")]
    assert {"run.json", "table.json", "manifest.json"} <= {file.name for file in files}
    for file in files:
        name = re.sub(r"(-hard)?-10(?=\.json$)", "", file.name)  # the store and the limit
        name = re.sub(r"^(rotate|transe)\.[a-z-]+(?=\.json$)", "BACKBONE.METHOD", name)
        assert f"`{name}" in text, file
    columns = {file.name.partition(".")[2] for file in (folder / "queries").rglob("*.npy")}
    for column in columns:
        assert column in text.replace("`….values.npy`", "easy.values.npy hard.values.npy")


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


def test_the_short_guide_shows_the_plugin_of_the_full_one():
    full, short = blocks(CONTRIBUTING, "python")[0], blocks(DOCS["plugins.md"], "python")[0]
    assert full.endswith(short)


def test_the_way_from_pykeen(tmp_path, monkeypatch):
    """The tables arrive as PyKEEN has them: the scores are its own."""
    pytest.importorskip("pykeen", reason="PyKEEN is not installed here")
    (block,) = blocks(DOCS["python.md"], "py")
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


def test_the_names_of_the_guides_are_public():
    """Names that the guides and `plugins/` import belong to the public interface."""
    texts = [CONTRIBUTING, *PAGES.values()]
    sources = [block for text in texts for name in ("python", "py") for block in blocks(text, name)]
    sources += [path.read_text() for path in (ROOT / "plugins").glob("*.py")]

    def imported(module: str) -> set[str]:
        return {
            name.name
            for source in sources
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom) and node.module == module
            for name in node.names
        }

    assert {"backbone_class", "save_backbone"} <= imported("lmpnn_kge") <= set(lmpnn_kge.__all__)
    names = imported("lmpnn_kge.plugin")
    assert {"Backbone", "Checkpoint", "hookimpl"} <= names <= set(lmpnn_kge.plugin.__all__)


@pytest.mark.parametrize("guide", [CONTRIBUTING, DOCS["plugins.md"]], ids=["full", "short"])
def test_a_guide_for_plugins_imports_only_from_the_surface_for_plugins(guide):
    nodes = [n for source in blocks(guide, "python") for n in ast.walk(ast.parse(source))]
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    ours = {module for module in modules if module.partition(".")[0] == "lmpnn_kge"}
    assert {"lmpnn_kge.plugin"} <= ours <= {"lmpnn_kge.plugin", "lmpnn_kge.testing"}


def test_every_hook_and_every_point_of_the_contract_is_documented():
    hooks = [name for name in vars(hookspecs) if name.startswith("lmpnn_kge_")]
    contract = ["forward", "invert", "relation_width", "distance", "random_fields"]
    contract += ["from_libkge", "to_libkge", "entity_width", "distances", "project"]
    attributes = ["score_type", "formula", "inverse_formula", "libkge_models"]
    assert all(hasattr(Backbone, name) for name in contract)
    assert hooks
    for name in [*hooks, *contract, *attributes]:
        assert f"`{name}" in CONTRIBUTING


def test_every_room_and_every_module_at_the_root_has_a_row_in_the_guide():
    table = CONTRIBUTING[CONTRIBUTING.index("| room of `lmpnn_kge/` |") :].split("\n\n")[0]
    named = {
        name for row in table.splitlines() for name in re.findall("`(.*?)`", row.split("|")[1])
    }
    rooms = [f"{path.parent.name}/" for path in (ROOT / "lmpnn_kge").glob("*/__init__.py")]
    modules = [path.name for path in (ROOT / "lmpnn_kge").glob("[a-z]*.py")]
    assert named - {"lmpnn_kge/"} == {*rooms, *modules}
