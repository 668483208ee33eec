"""The commands as a user types them."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from importlib.metadata import EntryPoint

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from lmpnn_kge import __version__, open_backbone, save_backbone
from lmpnn_kge.backbones import discovery as plugins
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
    assert lines[0].split() == ["name", "type", "f(h,", "r)", "inverse"]
    assert lines[7].split() == ["rotate", "distance", "h", "·", "e^(iθ)", "−θ"]
    assert "broken" not in run("backbones").stdout


def test_backbones_in_every_detail():
    blocks = run("backbones", "--verbose").stdout.split("\n\n")
    assert blocks[6].splitlines() == [
        "rotate",
        "  type          distance",
        "  f(h, r)       h · e^(iθ)",
        "  inverse       −θ",
        "  LibKGE        RotatE",
        f"  distribution  lmpnn-kge {__version__}",
        "  health        ok",
    ]
    assert all(block.splitlines()[-1].split() == ["health", "ok"] for block in blocks)


class Distribution:
    def __init__(self, name, version="1.2"):
        self.name, self.version = name, version


def test_backbones_of_others_and_broken_ones_are_named_below_the_table(monkeypatch):
    entries = [
        EntryPoint("half", "lmpnn_kge_distmult", plugins.GROUP)._for(Distribution("their-half")),
        EntryPoint("gone", "no_such_module", plugins.GROUP)._for(Distribution("their-gone")),
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda group: entries)
    lines = run("backbones").stdout.splitlines()
    assert lines[1].split() == ["gone", "broken"]
    assert lines[2].split() == ["half", "inner", "product", "h", "∘", "r", "r"]
    assert lines[3].startswith("backbone 'gone' of their-gone 1.2 is broken: ModuleNotFoundError")
    assert lines[4] == "half is from their-half 1.2"
    assert "health        backbone 'gone' of their-gone" in run("backbones", "-v").stdout


def on_a_terminal(*arguments, columns=80):
    """The lines that a command prints on a terminal with some columns, without colours."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "lmpnn_kge", *map(str, arguments)]
    with os.fdopen(screen, encoding="utf-8", errors="replace", newline="") as output:
        process = subprocess.Popen(command, stdout=terminal, env=environment | {"TERM": "xterm"})
        os.close(terminal)
        text = ""
        with suppress(OSError):  # how Linux reports the end of a terminal
            while part := output.read(1):
                text += part
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "").splitlines()


def test_the_backbones_fit_80_columns():
    shown = on_a_terminal("backbones")
    piped = run("backbones").stdout.splitlines()
    assert [line.rstrip() for line in shown] == [line.rstrip() for line in piped]
    assert max(cell_len(line) for line in shown) <= 80


def test_long_facts_break_between_words_on_a_terminal():
    file = CHECKPOINTS / "rotate.train.pt"
    lines = on_a_terminal("inspect", file, columns=60)
    start = next(i for i, line in enumerate(lines) if line.startswith("missing"))
    assert lines[start + 1] == " " * 12 + "of toykg with --dataset DIR"
    assert all(cell_len(line) <= 60 for line in lines if str(file) not in line)
    joined = " ".join(line.strip() for line in lines[start:])
    assert joined.split() == run("inspect", file).stdout.splitlines()[-1].split()


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
    assert "the folder of toykg with --dataset DIR" in output


def test_inspect_with_the_folder_misses_nothing(toy_dataset):
    result = inspect("rescal.train.pt", "--dataset", toy_dataset, "--json")
    facts = json.loads(result.stdout)
    assert (facts["ids"], facts["missing"]) == (True, [])


def test_inspect_a_model_that_no_backbone_reads_says_so(tmp_path):
    output = inspect(save(tmp_path / "mine.pt", content("mine", "Mine"))).stdout
    assert "Mine, plain" in output
    assert "which no installed backbone opens" in output


def test_ranking_as_text_and_as_json(toy_dataset):
    arguments = ("rotate.package.pt", "--dataset", toy_dataset, "--rank", "test")
    ranking = json.loads(inspect(*arguments, "--json").stdout)["ranking"]
    assert list(ranking) == ["split", "mrr", "hits@1", "hits@3", "hits@10"]
    assert 0 <= ranking["hits@1"] <= ranking["hits@3"] <= ranking["hits@10"] <= 1
    assert f"test: MRR {ranking['mrr']:.4f}" in inspect(*arguments).stdout


@pytest.mark.parametrize("folder", ["data", "elsewhere"])
def test_ranking_finds_the_dataset_as_train_does(here, monkeypatch, toy_dataset, folder):
    (here / folder).mkdir()
    (here / folder / "toykg").symlink_to(toy_dataset)
    monkeypatch.setenv("LMPNN_KGE_DATA", str(here / "elsewhere"))
    given = inspect("rotate.train.pt", "--rank", "test", "--dataset", toy_dataset, "--json")
    assert inspect("rotate.train.pt", "--rank", "test", "--json").stdout == given.stdout


def test_a_file_that_names_no_dataset_cannot_be_ranked_without_one(tmp_path):
    file = tmp_path / "file.safetensors"
    save_backbone(open_backbone(CHECKPOINTS / "rotate.package.pt"), file)
    line = run("inspect", file, "--rank", "test", code=2).stderr
    assert "--rank test needs the dataset, but the file does not name it; give its folder" in line


def test_against_libkge_says_so_if_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "kge", None)
    assert "LibKGE cannot be imported" in inspect("rotate.train.pt", "--against-libkge").stdout
    facts = json.loads(inspect("rotate.train.pt", "--against-libkge", "--json").stdout)
    assert facts["against_libkge"]["available"] is False


def test_against_libkge_compares_if_it_is_installed():
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
    output = run("pretrain", *given, "--set", "dim=10000000", code=2).stderr
    assert output.startswith("Error: out of memory: ")
    assert output.endswith("; use a smaller dim, hidden or batch_size\n")
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


def test_a_narrow_locale_does_not_fail():
    command = [sys.executable, "-m", "lmpnn_kge", "backbones"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "\\u2218" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rank", "test"], "--rank test needs the dataset, but 'toykg' is not in ./data, in"),
        (["--dataset", "nowhere"], "nowhere is neither a folder nor a file of triples"),
        (["--backbone", "complx"], "did you mean 'complex'?"),
        (["--backbone", "complex"], "is a RotatE, but backbone 'complex' opens ComplEx"),
        (["--dataset", TOY / "dataset", "--rank", "tset"], "did you mean 'test'?"),
        (["--dataset", TOY / "checkpoints"], "has neither dataset.yaml nor train.txt"),
    ],
)
def test_mistakes_are_one_line(arguments, words):
    stderr = inspect("rotate.package.pt", *arguments, code=2).stderr
    assert words in stderr
    assert stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["ask", "--help"]])
def test_help_that_cannot_be_printed_is_one_line(arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "lmpnn_kge", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: standard output: No space left on device\n")


@pytest.mark.parametrize("command", ["backbones", "loaders"])
def test_a_closed_output_is_as_good_as_none(command):
    closed = ["sh", "-c", 'exec "$0" -m lmpnn_kge "$1" >&-', sys.executable, command]
    done = subprocess.run(closed, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_setting_that_matplotlib_refuses_is_one_line():
    program = "from lmpnn_kge.reports import plots\nwith plots._plotting(): pass"
    environment = os.environ | {"MPLBACKEND": "nothing"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert "LmpnnError: matplotlib refuses its settings: Key backend: 'nothing'" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be removed there")
def test_a_current_folder_that_was_removed_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    result = run("split", str(TOY.parent / "toy.tsv"), "-o", "new", "--no-header", code=2)
    assert result.stderr == "Error: the current folder: No such file or directory\n"


def test_a_demo_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    line = run("demo", "-o", str(tmp_path / "file"), code=2).stderr
    assert line.startswith("Error: ")
    assert line.count("\n") == 1
