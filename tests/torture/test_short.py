"""The short, seeded part of `make torture`: some cases of each campaign; none may fail."""

import subprocess
import sys

import pytest

from ..conftest import ROOT
from .campaigns import CAMPAIGNS

#: How many cases of a campaign run here. The others start commands again and again.
CASES = {
    "checkpoints": 150,
    "safetensors": 40,
    "stores": 25,
    "datasets": 30,
    "texts": 60,
    "surroundings": 20,
    "places": 25,
    "formulas": 60,
    "requests": 50,
    "threads": 2,
    "signals": 3,
    "two-processes": 3,
}
FEW = 5


#: Campaigns of which even a few cases take minutes.
SLOW = ("killed-demo",)


@pytest.mark.parametrize("name", [c.name for c in CAMPAIGNS if c.name not in SLOW])
def test_no_case_of_a_campaign_fails(tmp_path, name):
    if name == "requests":
        pytest.importorskip("starlette", reason="the extra serve is not installed")
        pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    options = ["--only", name, "--cases", str(CASES.get(name, FEW)), "--seed", "17"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture", *options, "--failures", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
