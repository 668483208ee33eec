"""A tuning chooses on valid, tests once, and survives a kill."""

import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing

import pytest

from lmpnn_kge.errors import LmpnnError, RunError
from lmpnn_kge.runs.run import Run
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.training.loop import Loop
from lmpnn_kge.tuning.trials import Pruned, TrialListener
from lmpnn_kge.tuning.tune import tune
from lmpnn_kge.work.listener import Epoch, Listener

from ..conftest import TOY
from ..toy_runs import ROTATE, cli, options, start, tiny

pytest.importorskip("optuna", reason="the extra tune is not installed")

SEARCH = ("learning_rate=1e-4..1e-1,log", "negatives=shared|all")


def tuned_on(queries, out, trials=3, search=SEARCH, **more):
    return tune(
        ROTATE,
        search,
        trials=trials,
        dataset=TOY / "dataset",
        queries=queries,
        settings=tiny(),
        out=out,
        **more,
    )


@pytest.fixture(scope="module")
def tested():
    """The splits that were evaluated."""
    return []


@pytest.fixture(scope="module")
def whole(tmp_path_factory, toy_queries, tested):
    evaluate = Run.evaluate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Run,
            "evaluate",
            lambda self, split="test", **more: (
                tested.append(split) or evaluate(self, split, **more)
            ),
        )
        return tuned_on(toy_queries, tmp_path_factory.mktemp("tuned") / "whole")


def kept(tuned):
    return json.loads((tuned / "result.json").read_text())


def test_the_best_on_valid_is_kept_and_tested_once(whole, tested):
    assert tested == ["test"]
    assert len(whole.trials) == 3
    complete = [trial for trial in whole.trials if not trial.pruned]
    assert whole.best.valid == max(t.valid for t in (whole.default, *complete))
    folders = [path for path in whole.folder.iterdir() if path.name.startswith("run-")]
    assert [path for path in folders if (path / "test.json").exists()] == [whole.run]
    assert whole.results == Run.open(whole.run).results
    content = kept(whole.folder)
    assert content["test"] == whole.results.to_json()
    assert content["best"]["settings"] == dict(whole.best.settings)


def test_it_ends_in_a_configuration_and_a_plot(whole):
    settings = load_config(whole.config)
    assert {name: getattr(settings, name) for name in whole.best.settings} == whole.best.settings
    assert settings.hidden == 8
    assert whole.plot.read_text().startswith("<svg")


def test_a_finished_tuning_is_not_trained_or_tested_again(whole, toy_queries, monkeypatch):
    monkeypatch.setattr(Loop, "step", None)
    monkeypatch.setattr(Run, "evaluate", None)
    again = tuned_on(toy_queries, whole.folder)
    assert (again.best, again.trials, again.results) == (whole.best, whole.trials, whole.results)


def test_more_trials_after_the_test_are_refused(whole, toy_queries):
    with pytest.raises(RunError, match=r"the best of 3 trials in .* was tested already"):
        tuned_on(toy_queries, whole.folder, trials=4)


def test_a_folder_has_one_tuning(whole, toy_queries, tmp_path):
    with pytest.raises(RunError, match="has a tuning of other settings, another space or other"):
        tuned_on(toy_queries, whole.folder, search=["hidden=4..8"])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(LmpnnError, match="exists and holds something else"):
        tuned_on(toy_queries, tmp_path / "other")


def test_a_tuning_that_was_killed_ends_as_if_it_was_not(whole, here, toy_queries):
    words = ["tune", "--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", toy_queries]
    words += [part for text in SEARCH for part in ("--search", text)]
    words += ["--trials", 3, "--out", "killed", *options()]
    process = start(*words, cwd=here)
    for line in process.stderr:
        if line.startswith("note: trial 2 of 3"):
            break
    for line in process.stderr:
        if line.startswith("epoch   1/2"):
            break
    process.kill()
    process.wait()
    process.stderr.close()
    process.stdout.close()
    assert not (here / "killed" / "result.json").exists()
    assert not [*(here / "killed").glob("run-*/test.json")]
    out = cli(*words).stdout
    killed, expected = kept(here / "killed"), kept(whole.folder)
    assert killed["trials"] == expected["trials"]
    assert killed["best"] == expected["best"]
    assert killed["test"]["types"] == expected["test"]["types"]
    assert out.count("test, MRR in percent") == 1
    assert "config    killed/best.yaml" in out


def test_a_trial_that_falls_behind_is_stopped():
    class Study:
        reported: list = []  # noqa: RUF012

        def report(self, value, step):
            self.reported.append((step, value))

        def should_prune(self):
            return self.reported[-1][1] < 0.2

    trial = TrialListener(Listener(), Study())
    trial.epoch(Epoch(1, 3, 1.0, 0.1, None))
    trial.epoch(Epoch(2, 3, 1.0, 0.1, None, {"1p": 0.4}, 0.3))
    with pytest.raises(Pruned):
        trial.epoch(Epoch(3, 3, 1.0, 0.1, None, {"1p": 0.4}, 0.1))
    assert Study.reported == [(2, 0.3), (3, 0.1)]


def test_without_validation_nothing_can_be_compared(here, toy_queries):
    given = {"checkpoint": ROTATE, "search": SEARCH, "dataset": TOY / "dataset"}
    with pytest.raises(RunError, match="set validate_every to 1 or more"):
        tune(**given, queries=toy_queries, settings=tiny(validate_every=0), out="out")
    assert not (here / "out").exists()


def test_a_missing_package_is_named(here, toy_queries, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(LmpnnError, match=r"pip install 'lmpnn-kge\[tune\]'"):
        tuned_on(toy_queries, here / "out")
    assert not (here / "out").exists()


def test_a_tuning_can_move(whole, tmp_path, toy_queries):
    shutil.copytree(whole.folder, tmp_path / "ä b?")
    assert tuned_on(toy_queries, tmp_path / "ä b?").best == whole.best


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "pipe", "loop"])
def test_a_damaged_study_is_one_line(whole, tmp_path, toy_queries, damage):
    shutil.copytree(whole.folder, tmp_path / "copy")
    file = tmp_path / "copy" / "study.db"
    content = file.read_bytes()
    file.unlink()
    match damage:
        case "empty":
            file.touch()
        case "cut":
            file.write_bytes(content[: len(content) // 2])
        case "text":
            file.write_text("not a database\n" * 1000)
        case "pipe":
            os.mkfifo(file)
        case "loop":
            file.symlink_to(file)
    with pytest.raises(RunError, match=r"study.db is damaged|was tested already"):
        tuned_on(toy_queries, tmp_path / "copy")


def test_a_changed_study_or_run_is_noticed(whole, tmp_path, toy_queries):
    shutil.copytree(whole.folder, tmp_path / "copy")
    with closing(sqlite3.connect(tmp_path / "copy" / "study.db")) as database, database:
        database.execute("UPDATE trial_intermediate_values SET intermediate_value = 0.9")
    with pytest.raises(RunError, match=r"does not agree with .* one of them is damaged"):
        tuned_on(toy_queries, tmp_path / "copy")
    shutil.copytree(whole.folder, tmp_path / "other")
    for file in (tmp_path / "other").glob("run-*/metrics.jsonl"):
        file.write_text("")
    with pytest.raises(RunError, match="has no validation"):
        tuned_on(toy_queries, tmp_path / "other")
