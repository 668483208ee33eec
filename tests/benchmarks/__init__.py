"""Benchmarks, whose threads wait for each other as those of the command do."""

import os

from lmpnn_kge.cli.threads import wait_briefly

wait_briefly(os.environ)  # before torch is loaded
