"""Paths in run.json: relative where it can be, and never with the name of a user."""

import sys
from pathlib import Path

import pytest

from lmpnn_kge.training.provenance import Software, located_path, recorded_path


@pytest.mark.parametrize(
    ("path", "folder", "recorded"),
    [
        ("/home/alice/work/x.pt", "/home/alice/work/runs/one", "../../x.pt"),
        ("/home/alice/data/x.pt", "/home/alice/work/runs/one", "../../../data/x.pt"),
        ("/home/alice/data/x.pt", "/scratch/runs/one", "~/data/x.pt"),
        ("/data/x.pt", "/scratch/runs/one", "/data/x.pt"),
        ("/home/alice/work/runs/one/x.pt", "/home/alice/work/runs/one", "x.pt"),
    ],
)
def test_a_path_is_recorded_without_a_user_and_found_again(monkeypatch, path, folder, recorded):
    monkeypatch.setenv("HOME", "/home/alice")
    assert recorded_path(path, Path(folder)) == recorded
    assert located_path(recorded, Path(folder)) == Path(path)


def test_absolute_paths_of_older_versions_are_found(tmp_path):
    assert located_path("/home/alice/x.pt", tmp_path) == Path("/home/alice/x.pt")
    assert located_path("~nobody-has-this-name/x.pt", tmp_path) is not None


def test_the_command_is_recorded_without_a_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "/home/alice/x.pt", f"--out={tmp_path}/run", "/data/y"]
    monkeypatch.setattr(sys, "argv", ["/home/alice/.venv/bin/lmpnn-kge", *arguments])
    assert Software.now().command == "lmpnn-kge train '~/x.pt' --out=run /data/y"
