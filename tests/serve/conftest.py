"""A small run, and a server for it inside of the test process."""

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra serve is not installed")

from starlette.testclient import TestClient

from lmpnn_kge import KnowledgeGraph, Run
from lmpnn_kge.serve.app import make_app
from lmpnn_kge.serve.endpoints import Service
from lmpnn_kge.serve.limits import Limits
from lmpnn_kge.serve.served_run import ServedRun

from ..conftest import TOY
from ..toy_runs import sample_few, train_tiny

#: What a browser and curl send as the name of the host.
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    types = ("1p", "2p", "2i", "2u", "2in", "pi", "pni")
    sample_few(KnowledgeGraph.open(TOY / "dataset"), folder / "queries", types=types)
    train_tiny(folder / "queries", folder / "toy")
    return folder / "toy"


@pytest.fixture(scope="session")
def run(run_folder) -> Run:
    return Run.open(run_folder)


@pytest.fixture(scope="session")
def served(run) -> ServedRun:
    return ServedRun("toy", run, Limits())


@pytest.fixture(scope="session")
def service(served) -> Service:
    return Service({"toy": served}, Limits())


def client_of(service: Service, **access):
    """A client of an application that reports bugs as exceptions."""
    return TestClient(make_app(service, **access), base_url=ADDRESS)


@pytest.fixture(scope="session")
def client(service):
    app = make_app(service)
    yield TestClient(app, base_url=ADDRESS)
    app.close()
