"""Trackers hear of a training, and cannot stop it."""

import sys
import types
from importlib.metadata import EntryPoint

import pytest

from lmpnn_kge.backbones import discovery
from lmpnn_kge.errors import PluginError
from lmpnn_kge.plugin import Tracker, hookimpl
from lmpnn_kge.work.listener import Listener

from ..toy_runs import ROTATE, cli, train_tiny


class Recorded(Tracker):
    """Keeps all that it hears."""

    heard: list = []  # noqa: RUF012

    def __init__(self, folder):
        super().__init__(folder)
        self.heard.append(("start", folder.name))

    def parameters(self, values):
        self.heard.append(("parameters", dict(values)))

    def metrics(self, values, step):
        self.heard.append(("metrics", step, dict(values)))

    def artefact(self, file):
        self.heard.append(("artefact", file.name))

    def close(self):
        self.heard.append(("close",))


class Failing(Recorded):
    def metrics(self, values, step):
        raise OSError("the server is gone")


class Notes(Listener):
    def __init__(self):
        self.texts = []

    def note(self, text):
        self.texts.append(text)


@pytest.fixture(autouse=True)
def heard():
    Recorded.heard = []
    return Recorded.heard


@pytest.fixture
def install(monkeypatch):
    """Pretend that hooks are installed as trackers: install(name=function, …)."""
    installed = discovery.entry_points

    def pretend(**hooks):
        entries = []
        for name, hook in hooks.items():
            module = types.ModuleType(f"plugin_{name}")
            module.lmpnn_kge_tracker = hookimpl(hook)
            monkeypatch.setitem(sys.modules, module.__name__, module)
            entries.append(EntryPoint(name, module.__name__, discovery.TRACKERS))
        monkeypatch.setattr(
            discovery,
            "entry_points",
            lambda group: entries if group == discovery.TRACKERS else installed(group=group),
        )

    return pretend


def test_a_tracker_hears_parameters_metrics_and_files(install, heard, toy_queries, tmp_path):
    install(mine=lambda: Recorded)
    run = train_tiny(toy_queries, tmp_path / "run", more={"track": ["mine"]})
    kinds = [event[0] for event in heard]
    assert kinds == ["start", "parameters", *["metrics"] * 3, *["artefact"] * 4, "close"]
    assert heard[0][1] == "run"
    parameters = heard[1][1]
    assert (parameters["hidden"], parameters["epochs"]) == (8, 2)
    assert "rotate of width" in parameters["backbone"]
    assert [event[1] for event in heard[2:5]] == [1, 2, 2]
    assert {"loss", "learning_rate", "valid/1p"} <= heard[2][2].keys()
    assert heard[4][2] == {f"test/{name}": value for name, value in run.results.mrr.items()}
    files = ["config.yaml", "model.safetensors", "metrics.jsonl", "test.json"]
    assert [event[1] for event in heard[5:9]] == files


def test_a_training_is_the_same_with_a_tracker(install, toy_queries, tmp_path):
    install(mine=lambda: Recorded)
    with_tracker = train_tiny(toy_queries, tmp_path / "one", more={"track": ["mine"]})
    assert with_tracker.results == train_tiny(toy_queries, tmp_path / "two").results


def test_a_tracker_that_fails_does_not_stop_the_training(install, heard, toy_queries, tmp_path):
    install(bad=lambda: Failing, good=lambda: Recorded)
    notes = Notes()
    more = {"track": ["bad", "good"], "listener": notes}
    assert train_tiny(toy_queries, tmp_path / "run", more=more).results is not None
    broken = "tracker 'bad' of unknown is broken: OSError: the server is gone; it gets nothing more"
    assert [text for text in notes.texts if "tracker" in text] == [broken]
    assert [event[0] for event in heard].count("metrics") == 3


def test_a_training_that_is_stopped_closes_its_trackers(install, heard, toy_queries, tmp_path):
    install(mine=lambda: Recorded)

    class Stop(Listener):
        def epoch(self, epoch):
            raise KeyboardInterrupt

    more = {"track": ["mine"], "listener": Stop()}
    with pytest.raises(KeyboardInterrupt):
        train_tiny(toy_queries, tmp_path / "run", more=more)
    assert heard[-1] == ("close",)
    assert "artefact" not in [event[0] for event in heard]


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (lambda: None, "must return a subclass of Tracker, not None"),
        (lambda: Recorded.__init__, "must return a subclass of Tracker"),
    ],
)
def test_a_hook_that_returns_something_else_is_refused(install, toy_queries, here, hook, words):
    install(mine=hook)
    with pytest.raises(PluginError, match=words):
        train_tiny(toy_queries, here / "run", more={"track": ["mine"]})
    assert not (here / "run").exists()


def test_a_missing_package_is_named_before_the_work(install, toy_queries, here):
    def lacking():
        raise PluginError("the tracker mine needs `pip install mine`")

    install(mine=lacking)
    arguments = ["train", "--checkpoint", ROTATE, "--queries", toy_queries, "--out", "run"]
    stderr = cli(*arguments, "--track", "mine", code=2).stderr
    assert stderr == "Error: the tracker mine needs `pip install mine`\n"
    assert not (here / "run").exists()


def test_an_unknown_tracker_is_refused_with_the_known_ones(toy_queries, here):
    arguments = ["train", "--checkpoint", ROTATE, "--queries", toy_queries, "--out", "run"]
    stderr = cli(*arguments, "--track", "wanbd", code=2).stderr
    assert "no tracker is called 'wanbd'; did you mean 'wandb'?" in stderr
    assert "choose from: mlflow, tensorboard, wandb" in stderr


def test_trackers_are_listed_with_their_health(install):
    assert [line.split()[0] for line in cli("trackers").stdout.splitlines()] == [
        "name",
        "mlflow",
        "tensorboard",
        "wandb",
    ]
    install(mine=lambda: Recorded)
    assert "mine unknown      ok" in cli("trackers").stdout
    misspelt = types.ModuleType("plugin_mine")
    misspelt.lmpnn_kge_traker = hookimpl(lambda: Recorded)
    sys.modules["plugin_mine"] = misspelt
    assert "unknown hook 'lmpnn_kge_traker'" in " ".join(cli("trackers").stdout.split())
