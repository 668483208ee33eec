"""The shipped trackers write what another program reads, without a network."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import TOY
from ..toy_runs import ROTATE, command, options


def needs(package: str, extra: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the extra {extra} is not installed")


def train(tracker: str, folder: Path, queries: Path, *more: object) -> Path:
    """A training of two epochs in a process of its own, in which nothing can go elsewhere."""
    given = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", queries]
    given = ["train", "--resume", "--out", "run"] if more else ["train", *given, "--out", "run"]
    words = [*given, *(more or options()), "--track", tracker]
    offline = {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    environment = {name: os.environ[name] for name in os.environ if name[:6] != "MLFLOW"}
    done = subprocess.run(
        command(*words), cwd=folder, env=environment | offline, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "broken" not in done.stderr
    return folder / "run"


def expected(run: Path) -> dict[str, float]:
    """The last value of every metric that a tracker heard."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    tested = json.loads((run / "test.json").read_text())["types"]
    values = {f"test/{name}": found["mrr"] for name, found in tested.items()}
    valid = {f"valid/{name}": found["mrr"] for name, found in lines[-1]["valid"]["types"].items()}
    return {"loss": lines[-1]["loss"], **values, **valid}


def records(file: Path):
    """The records of an offline run of W&B: a log in blocks of 32 KB, as LevelDB has it."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, parts = file.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if 2**15 - place % 2**15 < 7:  # too little of a block is left for a head
            place += 2**15 - place % 2**15
            continue
        _, size, kind = struct.unpack("<IHB", data[place : place + 7])
        parts += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            record = Record()
            record.ParseFromString(parts)
            parts = b""
            yield record


@pytest.mark.long
def test_wandb_offline_has_all_metrics_parameters_and_files(tmp_path, toy_queries):
    needs("wandb", "wandb")
    run = train("wandb", tmp_path, toy_queries)
    (file,) = run.glob("wandb/offline-run-*/*.wandb")
    metrics, parameters, files = {}, {}, set()
    for record in records(file):
        for item in record.history.item:
            metrics[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
        for item in record.config.update:
            parameters[item.key] = json.loads(item.value_json)
        files |= {entry.path for entry in record.files.files}
    for name, value in expected(run).items():
        assert metrics[name] == pytest.approx(value)
    assert (parameters["hidden"], parameters["epochs"]) == (8, 2)
    assert {"config.yaml", "model.safetensors", "test.json"} <= files
    (kept,) = run.glob("wandb/offline-run-*/files/model.safetensors")
    assert kept.read_bytes() == (run / "model.safetensors").read_bytes()
    identity = (run / "wandb.id").read_text()
    train("wandb", tmp_path, toy_queries, "--epochs", 3)
    assert (run / "wandb.id").read_text() == identity
    assert len([*run.glob(f"wandb/offline-run-*-{identity}")]) == 2


@pytest.mark.long
def test_mlflow_has_all_metrics_parameters_and_files(tmp_path, toy_queries):
    needs("mlflow", "mlflow")
    run = train("mlflow", tmp_path, toy_queries)
    train("mlflow", tmp_path, toy_queries, "--epochs", 3)  # goes on in the same run
    code = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
(experiment,) = [e for e in client.search_experiments() if e.name == "lmpnn-kge"]
(found,) = client.search_runs([experiment.experiment_id])
id = found.info.run_id
print(json.dumps({
    "metrics": found.data.metrics, "params": found.data.params, "status": found.info.status,
    "steps": [one.step for one in client.get_metric_history(id, "loss")],
    "files": [file.path for file in client.list_artifacts(id)],
}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, (run / "mlflow").as_uri()],
        env=os.environ | {"MLFLOW_ALLOW_FILE_STORE": "true"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, value in expected(run).items():
        assert found["metrics"][name] == pytest.approx(value)
    assert (found["params"]["hidden"], found["status"]) == ("8", "FINISHED")
    assert found["steps"] == [1, 2, 3]
    assert {"config.yaml", "model.safetensors", "test.json"} <= set(found["files"])


def test_tensorboard_has_the_curves(tmp_path, toy_queries):
    needs("tensorboard", "tensorboard")
    run = train("tensorboard", tmp_path, toy_queries)
    code = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
tags = events.Tags()["scalars"]
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in tags}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, run / "tensorboard"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, value in expected(run).items():
        assert found[name][-1] == [2, pytest.approx(value, rel=1e-5)]
    assert [step for step, _ in found["loss"]] == [1, 2]


@pytest.mark.parametrize(
    ("tracker", "module"),
    [("wandb", "wandb"), ("mlflow", "mlflow"), ("tensorboard", "torch.utils.tensorboard")],
)
def test_a_missing_package_is_named_with_the_command(monkeypatch, tracker, module):
    from lmpnn_kge.backbones.discovery import find_tracker
    from lmpnn_kge.errors import PluginError

    monkeypatch.setitem(sys.modules, module, None)
    words = rf"needs `pip install 'lmpnn-kge\[{tracker}\]'`"
    with pytest.raises(PluginError, match=words):
        find_tracker(tracker).load_tracker()
