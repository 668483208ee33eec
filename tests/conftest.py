"""What tests share. Data outside the tree is used where present, never needed."""

import os
from pathlib import Path

import pytest

from lmpnn_kge.cli.threads import wait_briefly

wait_briefly(os.environ)  # as in a command: the tests of several processes share the cores

#: Folders of few tests that take long. They come first, so that no core waits for one at the end.
FIRST = ("torture", "training")

ROOT = Path(__file__).parents[1]
TOY = Path(__file__).parent / "data" / "libkge-toy"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.parent.name not in FIRST)


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


@pytest.fixture(scope="session")
def toy_queries(tmp_path_factory, toy_dataset) -> Path:
    """A few queries over the toy graph."""
    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph

    from .toy_runs import sample_few

    folder = tmp_path_factory.mktemp("toy") / "queries"
    sample_few(KnowledgeGraph.open(toy_dataset), folder)
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty working directory, without datasets from elsewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LMPNN_KGE_DATA", raising=False)
    return tmp_path
