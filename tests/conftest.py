"""Paths that tests share. Data outside the tree is used where present, never needed."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOY = Path(__file__).parent / "data" / "libkge-toy"


@pytest.fixture(scope="session")
def toy_dataset() -> Path:
    return TOY / "dataset"


@pytest.fixture(scope="session")
def fb15k237() -> Path:
    """FB15k-237 with LibKGE's checkpoints, which are not ours to ship."""
    folder = ROOT.parent / "shared" / "fb15k-237"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder
