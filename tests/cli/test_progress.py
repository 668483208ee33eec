"""Progress on a terminal and without one."""

import re
import shutil
import sys
from dataclasses import replace
from types import ModuleType

import pytest
from rich.progress import Progress

from lmpnn_kge.cli import progress as progress_module
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.query.patterns import POSITIVE
from lmpnn_kge.work.listener import Epoch

from ..conftest import TOY
from ..toy_runs import ROTATE, cli, options


def test_without_a_terminal_every_epoch_prints_a_line(here, toy_queries):
    arguments = ["--checkpoint", ROTATE, "--queries", toy_queries, "--out", "run"]
    lines = cli("train", *arguments, *options()).stderr.splitlines()
    assert [line.split()[0] for line in lines] == [
        "backbone",
        "queries",
        "device",
        "run",
        "epoch",
        "epoch",
        "next:",
    ]
    assert lines[4].startswith("epoch   1/2  loss ")
    assert "80 train, " in lines[1]
    assert "valid 1p" in lines[4]


def test_a_terminal_shows_names_as_they_are(here, toy_queries, monkeypatch):
    """Names come from files; what looks like markup is printed as it is."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    store = QueryStore.open(toy_queries)
    named = {
        split: {f"{name}[/b]": queries for name, queries in found.items()}
        for split, found in store.splits.items()
    }
    write_store(replace(store, splits=named), here / "queries")
    arguments = ["--checkpoint", ROTATE, "--queries", "queries", "--out", "run"]
    assert "valid 1p[/b]" in cli("train", *arguments, *options()).stderr
    assert "2u[/b]" in cli("evaluate", "run").stdout


def test_there_is_one_bar_at_a_time(here, monkeypatch):
    """Sampling and training share one, because rich does not always allow one in another."""
    shutil.copytree(TOY / "dataset", here / "data" / "toykg")
    monkeypatch.setenv("FORCE_COLOR", "1")
    running = []
    true_start, true_stop = Progress.start, Progress.stop

    def start(self):
        running.append(self)
        assert len(running) == 1
        true_start(self)

    def stop(self):
        running.remove(self)
        true_stop(self)

    monkeypatch.setattr(Progress, "start", start)
    monkeypatch.setattr(Progress, "stop", stop)
    cli("train", "--checkpoint", ROTATE, *options(epochs=0))
    assert running == []


def test_an_epoch_that_was_only_validated_has_no_speed(capsys):
    with terminal() as listener:
        listener.epoch(Epoch(3, 5, 1.5, 0.1, None))
    assert capsys.readouterr().err == "epoch   3/5  loss 1.5000\n"


def test_long_work_without_a_terminal_prints_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(progress_module, "PLAIN", -1.0)
    with terminal() as listener:
        listener.begin("sampling", 2000)
        listener.advance(1000, lambda: "train 2p")
        listener.advance(500)
    assert capsys.readouterr().err == (
        "sampling · train 2p: 1,000 of 2,000\nsampling: 1,500 of 2,000\n"
    )


def test_work_that_does_not_report_is_shown_to_go_on(capsys, monkeypatch):
    monkeypatch.setattr(progress_module, "PLAIN", -1.0)
    with terminal() as listener:
        listener.beat()
        listener.begin("sampling", 2000)
        listener.beat()
    assert capsys.readouterr().err == "working\nsampling: 0 of 2,000\n"


def test_a_detail_is_not_made_if_nobody_sees_it():
    def costly():
        raise AssertionError("made")

    with terminal() as listener:
        listener.begin("epoch 1/2", 10)
        listener.advance(1, costly)


def test_missing_tensorboard_is_reported_before_the_run_begins(here, toy_queries, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    arguments = ["--checkpoint", ROTATE, "--queries", toy_queries, "--out", "run", "--tensorboard"]
    stderr = cli("train", *arguments, *options(), code=2).stderr
    assert "pip install 'lmpnn-kge[tensorboard]'" in stderr
    assert not (here / "run").exists()


def test_tensorboard_gets_the_curves(here, toy_queries, monkeypatch):
    written = []

    class SummaryWriter:
        def __init__(self, folder):
            self.folder = folder

        def add_scalar(self, name, value, step):
            written.append((self.folder, name, step))

        def add_text(self, name, text):
            written.append((self.folder, name, 0))

        def flush(self):
            pass

        def close(self):
            pass

    module = ModuleType("tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    arguments = ["--checkpoint", ROTATE, "--queries", toy_queries, "--out", "run", "--tensorboard"]
    cli("train", *arguments, *options(epochs=1))
    assert ("run/tensorboard", "loss", 1) in written
    assert ("run/tensorboard", "valid/1p", 1) in written


@pytest.mark.parametrize("name", ["train", "evaluate", "table"])
def test_help_fits_a_terminal(name):
    assert all(len(line) <= 80 for line in cli(name, "--help").stdout.splitlines())


def test_a_terminal_breaks_the_line_of_an_epoch_between_words(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    with terminal() as listener:
        listener.epoch(Epoch(3, 5, 1.5, 0.1, 12345.0, dict.fromkeys(POSITIVE, 0.1234)))
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert text.split().count("12.3") == len(POSITIVE)
    assert max(map(len, text.splitlines())) <= 80
