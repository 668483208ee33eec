"""A command keeps the memory that a step has freed, unless the user wants something else."""

import platform
import subprocess
import sys

import pytest

from lmpnn_kge.cli.allocator import ALTERNATIVES, keep_freed_memory

GLIBC = platform.libc_ver()[0] == "glibc"

#: A step allocates and frees 16 MB; the pages that the system has to bring in are counted.
STEPS = """
import resource
import torch
from lmpnn_kge.cli.allocator import keep_freed_memory

assert keep_freed_memory({})
for step in range(12):
    if step == 2:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [torch.ones(2**20) for _ in range(4)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_what_the_user_has_set_stays(name):
    assert not keep_freed_memory({name: "1"})


@pytest.mark.skipif(not GLIBC, reason="the C library is not glibc")
def test_later_steps_bring_in_hardly_any_pages():
    command = [sys.executable, "-c", STEPS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    pages_of_ten_steps = 10 * 4 * 2**22 // 4096
    assert int(done.stdout) < pages_of_ten_steps / 20
