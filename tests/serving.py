"""A server in a process of its own, as a user starts it."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .conftest import ROOT

#: What Python runs: the command of a user.
PROGRAM = ("lmpnn_kge", "serve")


class Serving:
    """`lmpnn-kge serve` at a free port; its log is in a file."""

    def __init__(self, log: Path, *arguments: str | Path, program: tuple[str, ...] = PROGRAM):
        self.log = log
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *program, *map(str, arguments), "--port", "0"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://[^/]+:(\d+)/", line)
        if found is None:
            self.process.wait()
            raise RuntimeError(f"the server did not start: {line}{log.read_text()[-1000:]}")
        self.port = int(found[1])
        self.address = f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        with urllib.request.urlopen(self.address + path) as response:
            return json.load(response)

    def stop(self) -> int:
        """Stop as Ctrl-C does, and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()
        return self.process.returncode


@contextmanager
def serving(log: Path, *arguments: str | Path) -> Iterator[Serving]:
    server = Serving(log, *arguments)
    try:
        yield server
    finally:
        server.stop()
