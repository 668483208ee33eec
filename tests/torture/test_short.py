"""The short, seeded part of `make torture`: some cases of each campaign; none may fail."""

import subprocess
import sys

import pytest

from ..conftest import ROOT
from .campaigns import CAMPAIGNS

#: How many cases of a campaign run here.
CASES = {
    "checkpoints": 150,
    "safetensors": 40,
    "stores": 25,
    "datasets": 30,
    "texts": 60,
    "formulas": 60,
}

#: The same for campaigns whose cases take long.
LONG = {
    "surroundings": 20,
    "places": 25,
    "numbers": 30,
    "runs": 8,
    "betae": 5,
    "kills": 8,
    "signals": 4,
    "full-disk": 8,
    "file-errors": 6,
    "small-disk": 8,
    "pairs": 4,
    "settings": 12,
    "graphs": 4,
    "two-processes": 4,
    "vanishing": 8,
    "unfinished": 12,
    "threads": 3,
    "requests": 60,
}

#: Campaigns of which even a few cases take minutes.
SLOW = ("killed-demo",)


def test_every_campaign_is_here():
    assert {*CASES, *LONG, *SLOW} == {campaign.name for campaign in CAMPAIGNS}


@pytest.mark.parametrize(
    ("name", "cases"),
    [*CASES.items(), *(pytest.param(*few, marks=pytest.mark.long) for few in LONG.items())],
)
def test_no_case_of_a_campaign_fails(tmp_path, name, cases):
    if name == "requests":
        pytest.importorskip("starlette", reason="the extra serve is not installed")
        pytest.importorskip("rdflib", reason="the extra rdf is not installed")
    options = ["--only", name, "--cases", str(cases), "--seed", "17"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture", *options, "--failures", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
