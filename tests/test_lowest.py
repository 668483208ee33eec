"""Every dependency has a lower bound, and `make lowest` installs exactly these."""

from .conftest import ROOT
from .lowest import lower_bounds, pins

PYPROJECT = (ROOT / "pyproject.toml").read_text()


def test_every_dependency_has_a_lower_bound():
    bounds = lower_bounds(PYPROJECT)
    assert {"click", "duckdb", "numpy", "torch"} <= set(bounds)
    assert tuple(map(int, bounds["torch"].split("."))) >= (2, 10)  # CVE-2026-24747


def test_the_lowest_versions_are_pinned_except_torch_and_what_is_chosen():
    bounds = {"duckdb": "1.1", "numpy": "1.24", "torch": "2.10"}
    pinned = pins(bounds, ["duckdb==2.0.0"], "# one\ntorch==2.13.0 # for all\n")
    assert pinned == ["duckdb==2.0.0", "numpy==1.24", "torch==2.13.0"]
