"""A run can be stopped anywhere and in any way, and resumes to the same result."""

import dataclasses
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file, safe_open, save_file

from lmpnn_kge import ConfigError, FileError, Listener, LmpnnError, Run, RunError, train
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.reports.record import read_run
from lmpnn_kge.training import loop
from lmpnn_kge.training.folder import RUN, RunFolder
from lmpnn_kge.training.interrupt import Interrupted

from ..conftest import TOY
from ..edited import edit_json, edit_settings
from ..toy_runs import (
    CHECKPOINTS,
    ROTATE,
    TYPES,
    cli,
    options,
    partials,
    result_of,
    start,
    tiny,
    train_tiny,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, toy_queries):
    """A run that was never stopped."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train_tiny(toy_queries, folder, epochs=3)
    return folder


@pytest.fixture
def run(here, whole):
    """A copy of it that may be damaged."""
    return shutil.copytree(whole, here / "run")


class Stop(Listener):
    """Stops training after its first step or in a validation, as a signal would."""

    def __init__(self, monkeypatch, validation=None):
        self.steps = self.validations = 0

        @contextmanager
        def planted():
            yield lambda: self.validations == validation if validation else self.steps > 0

        monkeypatch.setattr(loop, "interruptions", planted)

    def begin(self, task, total=None, done=0):
        self.validating = task == "evaluating"

    def advance(self, steps=1, detail=None):
        if self.validating:
            self.validations += 1
        else:
            self.steps += 1


# To the same end


@pytest.mark.parametrize("validation", [1, 4, 6])
def test_a_stop_in_a_validation_changes_nothing(here, toy_queries, whole, monkeypatch, validation):
    with monkeypatch.context() as patch:
        more = {"listener": Stop(patch, validation)}
        with pytest.raises(Interrupted):
            train_tiny(toy_queries, here / "run", epochs=3, more=more)
    train(out=here / "run", resume=True)
    assert result_of(here / "run") == result_of(whole)


@pytest.mark.parametrize("attention", [0, 4])
def test_a_stop_after_every_step_changes_nothing(here, toy_queries, monkeypatch, attention):
    settings = {"epochs": 3, "attention": attention}
    train_tiny(toy_queries, here / "whole", **settings)
    with monkeypatch.context() as patch:
        for _ in range(3 * len(TYPES)):
            more = {"listener": Stop(patch), "resume": True}
            with pytest.raises(Interrupted):
                train_tiny(toy_queries, here / "run", **settings, more=more)
    train(out=here / "run", resume=True)  # no step is left, but the last validation
    assert result_of(here / "run") == result_of(here / "whole")


def test_an_interrupt_saves_and_prints_the_command_to_continue(here, toy_queries, whole):
    arguments = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", toy_queries]
    more = ["--out", "it's my run", "--device", "cpu"]
    process = start("train", *arguments, *options(epochs=2000, patience=0), *more, cwd=here)
    while not process.stderr.readline().startswith("epoch   2"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    said, _, line = stdout.strip().partition(": ")
    assert said == "stopped and saved; continue with"
    assert partials(here) == []
    done = len((here / "it's my run" / "metrics.jsonl").read_text().splitlines())
    environment = os.environ | {
        "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    }
    again = subprocess.run(
        f"{line} --epochs {done + 1}",
        shell=True,
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0, again.stderr
    assert len((here / "it's my run" / "metrics.jsonl").read_text().splitlines()) == done + 1
    assert again.stderr.count("epoch ") == 1


def test_an_interrupt_while_testing_prints_the_command_to_continue(here, toy_queries, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    arguments = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", toy_queries]
    with monkeypatch.context() as patch:
        patch.setattr("lmpnn_kge.runs.fitting.rank_split", interrupted)
        result = cli("train", *arguments, *options(epochs=1), "--out", "a b", code=130)
    assert result.stdout == "stopped; continue with: lmpnn-kge train --resume --out 'a b'\n"
    assert "test, MRR" in cli("train", "--resume", "--out", "a b").stdout


def test_a_killed_run_resumes_to_the_same_result(here, toy_queries):
    settings = {"epochs": 24, "patience": 0, "save_minutes": 0, "validate_every": 3}
    train_tiny(toy_queries, here / "whole", **settings)
    arguments = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", toy_queries]
    arguments += [*options(**settings), "--out", "killed", "--resume"]
    for lines in (5, 9, 14):  # of what it says; the first four come before it trains
        process = start("train", *arguments, cwd=here)
        for _ in range(lines):
            assert process.stderr.readline()
        process.kill()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
    cli("train", *arguments)
    assert result_of(here / "killed") == result_of(here / "whole")
    assert partials(here / "killed") == []


# What a run can be resumed with


def test_resume_without_a_run_begins_one(here, toy_queries, whole):
    train_tiny(toy_queries, here / "run", epochs=3, more={"resume": True})
    assert result_of(here / "run") == result_of(whole)


def test_resume_needs_something_to_resume(here):
    (here / "file").write_text("")
    for out in ("file", "."):
        assert "is not a run folder" in cli("train", "--resume", "--out", out, code=2).stderr
    assert "nowhere does not exist" in cli("train", "--resume", "--out", "nowhere", code=2).stderr
    assert "--checkpoint FILE" in cli("train", "--resume", code=2).stderr.replace("\n", " ")


def test_a_finished_run_stays_as_it_is(run, whole):
    before = {path.name: path.stat().st_mtime_ns for path in run.iterdir()}
    output = cli("train", "--resume", "--out", run).stdout
    assert "test, MRR in percent" in output
    assert {path.name: path.stat().st_mtime_ns for path in run.iterdir()} == before


def test_a_run_is_not_begun_twice(run, toy_queries, whole):
    arguments = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", toy_queries]
    stderr = cli("train", *arguments, *options(), "--out", run, code=2).stderr
    assert "is already a run; continue it with --resume" in stderr
    assert result_of(run) == result_of(whole)


def test_more_epochs_continue_a_run_and_test_it_again(run, whole):
    train(out=run, resume=True, settings={"epochs": 5})
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 5
    assert RunFolder.open(run, RUN).settings.epochs == 5
    assert result_of(run)["test"] == Run.open(run).evaluate().to_json()
    train(out=run, resume=True)  # and are remembered
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 5


def test_fewer_epochs_than_are_done_are_refused_and_nothing_is_changed(run, whole):
    stderr = cli("train", "--resume", "--out", run, "--epochs", 2, code=2).stderr
    assert "has finished 3 epochs and cannot go back to 2; ask for 3 or more" in stderr
    assert RunFolder.open(run, RUN).settings.epochs == 3
    assert result_of(run) == result_of(whole)


def test_fewer_epochs_than_were_asked_for_end_a_run_early(here, toy_queries, monkeypatch):
    with monkeypatch.context() as patch:
        more = {"listener": Stop(patch, validation=6)}  # in the second epoch
        with pytest.raises(Interrupted):
            train_tiny(toy_queries, here / "run", epochs=3, more=more)
    train(out=here / "run", resume=True, settings={"epochs": 1})
    assert len((here / "run" / "metrics.jsonl").read_text().splitlines()) == 1
    assert (here / "run" / "test.json").is_file()


@pytest.mark.parametrize(
    "settings", [{"hidden": 9}, {"seed": 1}, {"learning_rate": "1e-3"}, {"hidden": 9, "epochs": 9}]
)
def test_other_settings_are_another_run(run, whole, settings):
    with pytest.raises(ConfigError, match=r"began with other settings of (hidden|seed|learning)"):
        train(out=run, resume=True, settings=settings)
    with pytest.raises(ConfigError, match=r"began with other settings of .*\bhidden\b"):
        train(out=run, resume=True, config="paper-nell", settings=settings)
    assert RunFolder.open(run, RUN).settings == RunFolder.open(whole, RUN).settings


def test_a_run_resumes_with_the_same_settings_given_again(run):
    cli("train", "--resume", "--out", run, *options(epochs=3))


def test_another_checkpoint_is_another_run_and_nothing_is_changed(run, whole):
    other = CHECKPOINTS / "rotate-l2.package.pt"
    with pytest.raises(RunError, match=r"did not begin with the checkpoint .*rotate-l2"):
        train(other, out=run, resume=True, settings={"epochs": 9})
    assert RunFolder.open(run, RUN).settings.epochs == 3
    assert result_of(run) == result_of(whole)


def test_other_queries_are_another_run(run, here, toy_queries, whole):
    store = QueryStore.open(toy_queries)
    write_store(dataclasses.replace(store, provenance={"seed": 1}), here / "queries")
    with pytest.raises(RunError, match=r"did not begin with the queries .*queries"):
        train(out=run, resume=True, queries=here / "queries")
    shutil.copytree(toy_queries, here / "moved")
    train(out=run, resume=True, queries=here / "moved")
    assert result_of(run) == result_of(whole)


@pytest.mark.parametrize("lost", ["queries", "rotate.pt"])
def test_a_run_that_lost_an_input_names_it_and_makes_nothing_in_its_place(here, toy_queries, lost):
    shutil.copytree(TOY / "dataset", here / "data" / "toykg")
    shutil.copytree(toy_queries, here / "queries")
    shutil.copy(ROTATE, here / "rotate.pt")
    more = {"dataset": here / "data" / "toykg", "queries": here / "queries"}
    train(here / "rotate.pt", out=here / "run", settings=tiny(epochs=0), **more)
    (here / lost).rename(here / f"other {lost}")
    with pytest.raises(LmpnnError, match=lost):
        train(out=here / "run", resume=True)
    assert [path.name for path in (here / "data").iterdir()] == ["toykg"]


def test_queries_that_were_sampled_beside_the_graph_are_made_again_if_they_are_gone(here):
    dataset = shutil.copytree(TOY / "dataset", here / "toykg")
    train(ROTATE, out=here / "run", dataset=dataset, settings=tiny(epochs=1))
    before = result_of(here / "run")
    shutil.rmtree(here / "toykg-queries")
    train(out=here / "run", resume=True)
    assert result_of(here / "run") == before
    QueryStore.open(here / "toykg-queries").verify()


def test_a_run_refuses_its_graph_if_that_has_changed(here, toy_queries):
    dataset = shutil.copytree(TOY / "dataset", here / "toykg")
    train(ROTATE, out=here / "run", dataset=dataset, queries=toy_queries, settings=tiny(epochs=0))
    lines = (dataset / "train.del").read_text().splitlines(keepends=True)
    (dataset / "train.del").write_text("".join(lines[: len(lines) // 9]))
    with pytest.raises(RunError, match=r"toykg has changed since .*run was trained on it"):
        _ = Run.open(here / "run").graph
    assert Run.open(here / "run", dataset=TOY / "dataset").graph is not None
    with pytest.raises(RunError, match="did not begin with the graph"):
        train(out=here / "run", resume=True)


def test_changed_names_and_numbers_of_a_run_are_noticed(run):
    for file, words in (("names.json", "checksum"), ("model.safetensors", "have changed")):
        sound = (run / file).read_bytes()
        at = sound.index(b"sven") if file == "names.json" else len(sound) - 2
        (run / file).write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        with pytest.raises(RunError, match=f"{file} is damaged.*{words}"):
            Run.open(run)
        (run / file).write_bytes(sound)
    Run.open(run)


def test_another_dataset_is_another_run(here, toy_queries):
    checkpoint = CHECKPOINTS / "rotate.train.pt"  # which has no names of its own
    train_tiny(toy_queries, here / "run", checkpoint, epochs=0)
    folder = shutil.copytree(TOY / "dataset", here / "dataset")
    text = (folder / "entity_ids.del").read_text()
    (folder / "entity_ids.del").write_text(text.replace("sven", "svend"))
    with pytest.raises(
        RunError, match=r"did not begin with the graph .* and the names in .*dataset"
    ):
        train(out=here / "run", resume=True, dataset=folder)


def test_a_run_in_use_is_left_alone(run, here, toy_queries):
    with RunFolder.open(run, RUN).lock():
        stderr = cli("train", "--resume", "--out", run, code=2).stderr
        assert "is being trained by another process" in stderr
    cli("train", "--resume", "--out", run)


def test_leftovers_of_a_killed_run_are_removed(run):
    (run / ".state.safetensors.999999999-0123abcd.partial").write_text("half")
    train(out=run, resume=True)
    assert partials(run) == []


# What goes wrong


@pytest.mark.parametrize("changes", [{"learning_rate": 1e30}, {"temperature": 1e-300}])
def test_a_loss_that_is_not_finite_stops_the_run(here, toy_queries, changes):
    with pytest.raises(RunError, match=r"the loss is nan|weights are not finite"):
        train_tiny(toy_queries, here / "run", epochs=3, **changes)
    assert partials(here) == []
    assert not (here / "run" / "test.json").exists()


@pytest.mark.parametrize("what", ["loss", "weights"])
def test_the_last_good_state_is_kept_and_can_be_resumed(
    here, toy_queries, whole, monkeypatch, what
):
    true_step, steps = loop.Loop.step, []

    def planted(self, batch):
        loss = true_step(self, batch)
        steps.append(loss)
        if len(steps) == 8:
            if what == "loss":
                self.loss += float("nan")
            else:  # as an infinite gradient leaves them, while the loss is still a number
                with torch.no_grad():
                    self.task.model.free[0] = float("nan")
        return loss

    with monkeypatch.context() as patch:
        patch.setattr(loop.Loop, "step", planted)
        with pytest.raises(RunError, match=f"{what} (is|are) .* keeps the last good state"):
            train_tiny(toy_queries, here / "run", epochs=3, save_minutes=0)
    state = load_file(here / "run" / "state.safetensors")
    assert all(bool(value.isfinite().all()) for value in state.values())
    train(out=here / "run", resume=True)
    resumed, expected = result_of(here / "run"), result_of(whole)
    for result in (resumed, expected):  # how often it is saved is a setting, too
        del result["test"]["origin"]["settings"]["save_minutes"]
    assert resumed == expected


@pytest.mark.parametrize("call", range(8))
def test_a_full_disk_leaves_the_old_state(here, toy_queries, whole, monkeypatch, call):
    true_fsync, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > call:
            raise OSError(errno.ENOSPC, "No space left on device")
        true_fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(RunError, match=r"No space left on device; .* stays as it was"):
            train_tiny(toy_queries, here / "run", epochs=3)
    assert partials(here) == []
    train(out=here / "run", resume=True)
    assert result_of(here / "run") == result_of(whole)


def test_a_full_disk_before_the_run_leaves_nothing(here, toy_queries, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", full)
        with pytest.raises(FileError, match="No space left on device"):
            train_tiny(toy_queries, here / "run")
    assert list(here.iterdir()) == []


def test_one_who_was_quicker_is_not_replaced(here, toy_queries, whole, monkeypatch):
    from lmpnn_kge.training import folder as run_folder

    def slow(config):
        shutil.copytree(whole, here / "run")
        return "{}"

    monkeypatch.setattr(run_folder, "to_yaml", slow)
    with pytest.raises(FileError, match="exists and holds something else"):
        train_tiny(toy_queries, here / "run")
    assert result_of(here / "run") == result_of(whole)
    assert partials(here) == []


def both(run, words):
    """Neither training nor evaluation gets far, and nothing is changed."""
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    for arguments in (["evaluate", run], ["train", "--resume", "--out", run, "--epochs", "9"]):
        assert words in cli(*arguments, code=2).stderr
    after = {path.name: path.read_bytes() for path in run.iterdir()}
    assert {**after, "config.yaml": 0, "test.json": 0} == {
        **before,
        "config.yaml": 0,
        "test.json": 0,
    }


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "random": lambda content: bytes(range(256)) * 9,
    "a list": lambda content: b"[]",
    "a number": lambda content: b"7",
    "deep": lambda content: b"[" * 600,
    "nothing": lambda content: None,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["run.json", "config.yaml", "names.json"])
def test_a_damaged_file_is_named(run, name, damage):
    if (name, damage) == ("config.yaml", "truncated"):
        pytest.skip("half of the settings are still settings, see below")
    content = DAMAGES[damage]((run / name).read_bytes())
    (run / name).unlink() if content is None else (run / name).write_bytes(content)
    both(run, "run.json" if name == "run.json" else f"{name} is damaged")


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_tensors_are_named(run, damage):
    for name, arguments in (
        ("model.safetensors", ["evaluate", run]),
        ("state.safetensors", ["train", "--resume", "--out", run]),
    ):
        content = DAMAGES[damage]((run / name).read_bytes())
        (run / name).unlink() if content is None else (run / name).write_bytes(content)
        if content is not None:
            assert f"{name} is damaged" in cli(*arguments, code=2).stderr
    if damage == "nothing":
        assert "has no network yet" in cli("evaluate", run, code=2).stderr
        cli("train", "--resume", "--out", run)  # from the beginning
    assert partials(run) == []


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("model.safetensors", lambda t: t | {"free": torch.zeros(3)}),
        ("model.safetensors", lambda t: {"free": t["free"]}),
        ("model.safetensors", lambda t: t | {"more": torch.zeros(1)}),
        ("state.safetensors", lambda t: t | {"model.free": torch.zeros(3)}),
        ("state.safetensors", lambda t: t | {"optimiser.0.exp_avg": torch.zeros(3)}),
        ("state.safetensors", lambda t: t | {"optimiser.x.exp_avg": torch.zeros(3)}),
        ("state.safetensors", lambda t: t | {"optimiser.77.exp_avg": torch.zeros(3)}),
        ("state.safetensors", lambda t: {k: v for k, v in t.items() if "exp_avg_sq" not in k}),
        ("state.safetensors", lambda t: {k: v for k, v in t.items() if k != "loss"}),
        ("state.safetensors", lambda t: t | {"loss": torch.zeros(3)}),
    ],
)
def test_tensors_that_do_not_fit_are_refused(run, name, change):
    with safe_open(run / name, "pt") as content:
        metadata = content.metadata()
    save_file(change(load_file(run / name)), run / name, metadata)
    command = ["evaluate", run] if name[0] == "m" else ["train", "--resume", "--out", run]
    stderr = cli(*command, code=2).stderr
    assert f"{name} is damaged" in stderr or f"{name} does not fit" in stderr


@pytest.mark.parametrize(
    "facts", ["", "[]", "{}", '{"epoch": "one"}', '{"step": 1.5}', '{"history": 1}', '{"best": ""}',
              '{"other": 1}', None],
)  # fmt: skip
def test_a_state_without_progress_is_refused(run, facts):
    metadata = None if facts is None else {"facts": facts}
    save_file(load_file(run / "state.safetensors"), run / "state.safetensors", metadata)
    if facts == "{}":  # where a run begins
        return
    stderr = cli("train", "--resume", "--out", run, code=2).stderr
    assert "state.safetensors is damaged" in stderr


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("backbone", 3),
        ("backbone", None),
        ("precision", []),
        ("checkpoint", "rotate.pt"),
        ("checkpoint", {}),
        ("checkpoint", {"file": 1, "sha256": "a"}),
        ("queries", None),
        ("queries", {"folder": ["a"]}),
        ("dataset", 5),
        ("dataset", {"a": 1}),
    ],
)
def test_provenance_of_wrong_types_is_refused(run, key, value):
    edit_json(run / "run.json", lambda facts: facts.update({key: value}))
    both(run, "run.json is damaged: ")


def test_a_backbone_that_is_not_installed_is_reported(run):
    edit_json(run / "run.json", lambda facts: facts.update(backbone="quate"))
    both(run, "quate")


def test_a_run_of_another_format_is_refused_with_the_version_that_made_it(run):
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"format": 2, "made_by": "lmpnn-kge 9.9"}))
    both(run, "is a run of format 2, but this version reads format 1; use the version that made it")


@pytest.mark.parametrize(
    "change",
    [
        {"entity_ids": 3},
        {"entity_ids": [1, 2]},
        {"entity_ids": ["a", "a"]},
        {"relation_ids": None},
        {"entity_labels": ["one"]},
        {"other": []},
    ],
)
def test_invalid_names_are_refused(run, change):
    names = json.loads((run / "names.json").read_text())
    (run / "names.json").write_text(json.dumps(names | change))
    both(run, "names.json is damaged")


def read_all(run):
    """Read all texts of a run."""
    return read_run(run), Run.open(run)


def values(name, text):
    """The values in a text: the last digit of a long number need not change it."""
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text) if name.endswith(".json") else text


def test_a_changed_digit_is_noticed_in_every_text_of_a_run(run):
    for name in ("run.json", "config.yaml", "names.json", "test.json", "metrics.jsonl"):
        text = (run / name).read_text()
        for place in [match.start() for match in re.finditer("[0-9]", text)][::7]:
            digit = str((int(text[place]) + 1) % 10)
            changed = text[:place] + digit + text[place + 1 :]
            if values(name, changed) == values(name, text):
                continue
            (run / name).write_text(changed)
            with pytest.raises(RunError, match=f"{name} is damaged|format|not a run folder"):
                read_all(run)
        (run / name).write_text(text)
    read_all(run)


def test_damaged_results_are_measured_again(run):
    before = (run / "test.json").read_text()
    (run / "test.json").write_text(before.replace('"mrr": 0.', '"mrr": 0.9'))
    assert "test.json is damaged" in cli("report", run, "-o", run / "report", code=2).stderr
    printed = cli("train", "--resume", "--out", run).stderr
    assert "its checksum differs; it is measured again" in printed
    assert (run / "test.json").read_text() == before


def test_a_changed_fact_of_a_state_is_noticed(run):
    with safe_open(run / "state.safetensors", "pt") as content:
        facts = content.metadata()["facts"].replace('"stale": ', '"stale": 1')
    save_file(load_file(run / "state.safetensors"), run / "state.safetensors", {"facts": facts})
    stderr = cli("train", "--resume", "--out", run, "--epochs", "9", code=2).stderr
    assert "state.safetensors is damaged or missing: it has changed since it was written" in stderr


def test_weights_of_another_type_are_refused(run):
    for name in ("model.safetensors", "state.safetensors"):
        content = (run / name).read_bytes()
        (run / name).write_bytes(content.replace(b'"dtype":"F32"', b'"dtype":"I32"'))
    assert "model.safetensors" in cli("evaluate", run, code=2).stderr
    assert "state.safetensors is damaged" in cli("train", "--resume", "--out", run, code=2).stderr


def test_settings_that_are_missing_are_named(run):
    edit_settings(run, lambda text: re.sub("hidden:.*\n", "", text))
    both(run, "config.yaml is damaged: settings are missing: hidden")


def test_queries_of_another_graph_are_refused(here, toy_queries):
    store = QueryStore.open(toy_queries)
    renamed = [f"other {name}" for name in store.vocabulary.entity_ids]
    names = Vocabulary(renamed, store.vocabulary.relation_ids)
    write_store(dataclasses.replace(store, vocabulary=names), here / "queries")
    with pytest.raises(RunError, match="is of another graph than the checkpoint: unknown entities"):
        train_tiny(here / "queries", here / "run")
    assert not (here / "run").exists()
