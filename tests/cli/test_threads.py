"""The threads of a command sleep soon when they wait, unless the user wants something else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lmpnn_kge.cli.threads import SPINS, wait_briefly

from ..toy_runs import ROTATE, command


@pytest.mark.parametrize("own", [{"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "5"}])
def test_what_the_user_has_set_stays(own):
    environment = dict(own)
    wait_briefly(environment)
    assert environment == own


def test_the_library_leaves_the_threads_alone():
    code = "import os, lmpnn_kge.runs.train; assert 'GOMP_SPINCOUNT' not in os.environ"
    subprocess.run([sys.executable, "-c", code], check=True, env=without_settings())


def test_a_command_sets_it_before_torch_is_loaded():
    if not list(Path(torch.__file__).parent.glob("lib/libgomp*")):
        pytest.skip("torch uses another OpenMP than libgomp")
    environment = without_settings() | {"OMP_DISPLAY_ENV": "verbose"}
    done = subprocess.run(
        command("inspect", ROTATE), capture_output=True, text=True, env=environment, check=True
    )
    assert f"GOMP_SPINCOUNT = '{SPINS['GOMP_SPINCOUNT']}'" in done.stderr


def without_settings() -> dict[str, str]:
    """The environment of a user who has not set anything; other tests may have run a command."""
    names = ("OMP_WAIT_POLICY", *SPINS)
    return {name: value for name, value in os.environ.items() if name not in names}
