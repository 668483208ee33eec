"""Python environments for tests: made offline, beside the packages that are already installed."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from .conftest import ROOT


def build_wheel(project: Path, into: Path) -> Path:
    """A wheel of a project, with the build backend that is installed here."""
    run(sys.executable, "-m", "pip", "wheel", project, "--wheel-dir", into,
        "--no-deps", "--no-build-isolation", "--no-index", "--quiet")  # fmt: skip
    (wheel,) = into.glob("*.whl")
    return wheel


class Environment:
    """A virtual environment that sees this one's packages but not this checkout."""

    def __init__(self, folder: Path):
        venv.create(folder, with_pip=False, symlinks=True)
        self.bin = folder / "bin"
        self.python = self.bin / "python"
        (site_packages,) = folder.glob("lib/python*/site-packages")
        here = next(path for path in sys.path if path.endswith("site-packages"))
        # Only the folder itself: the editable install in it is not followed from a .pth file.
        (site_packages / "beside.pth").write_text(f"{here}\n")

    def install(self, wheel: Path) -> None:
        run(sys.executable, "-m", "pip", "--python", self.python, "install", wheel,
            "--no-deps", "--no-index", "--quiet")  # fmt: skip

    def lmpnn_kge(self, *arguments: str, cwd: Path) -> str:
        return run(self.bin / "lmpnn-kge", *arguments, cwd=cwd)

    def backbones(self, cwd: Path) -> dict[str, dict[str, Any]]:
        rows = json.loads(self.lmpnn_kge("backbones", "--json", cwd=cwd))
        return {row["name"]: row for row in rows}


def run(*command: object, cwd: Path = ROOT) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout
