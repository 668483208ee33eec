"""The door is light: help, version and listings import neither torch nor duckdb."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "duckdb", "numpy", "matplotlib", "safetensors"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["backbones"],
        ["backbones", "--json"],
        ["backbones", "check", "--help"],
        ["backbones", "new", "--help"],
        ["loaders"],
        ["trackers"],
        ["tune", "--help"],
        ["inspect", "--help"],
        ["train", "--help"],
        ["evaluate", "--help"],
        ["report", "--help"],
        ["table", "--help"],
        ["config", "list"],
        ["config", "show", "--config", "paper-nell", "--set", "seed=1"],
    ],
)
def test_nothing_heavy_is_imported(arguments):
    code = f"""
import json, sys
from lmpnn_kge.cli import main
try:
    main({arguments!r})
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert HEAVY.isdisjoint(json.loads(done.stderr))


def test_importing_the_package_is_light_and_its_names_are_all_there():
    code = f"import sys, lmpnn_kge; assert {HEAVY!r}.isdisjoint(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    import lmpnn_kge

    assert all(getattr(lmpnn_kge, name) is not None for name in lmpnn_kge.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        lmpnn_kge.no_such_name  # noqa: B018
