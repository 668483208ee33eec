"""`make lowest`: the tests with the lowest version of every dependency.

    python -m tests.lowest                          the lower bounds in pyproject.toml
    python -m tests.lowest duckdb==1.5.6            other versions of some

torch stays as constraints.txt pins it unless it is named: its builds are large, and not every
package index has every one.
"""

import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".venv-lowest"

#: A requirement such as `duckdb>=1.1`.
BOUND = re.compile(r'^\s*"([\w-]+)(?:\[\w+\])?>=([\w.]+)[^"]*",?\s*$')


def lower_bounds(text: str) -> dict[str, str]:
    """The lowest version of every dependency that a run needs, from pyproject.toml."""
    section = text.partition("\ndependencies = [")[2].partition("\n]")[0]
    matches = [BOUND.match(line) for line in section.splitlines() if line.strip()]
    assert all(matches), f"a dependency has no lower bound: {section}"
    return {match[1]: match[2] for match in matches if match}


def pins(bounds: dict[str, str], chosen: list[str], constraints: str) -> list[str]:
    """A pin for every dependency: a chosen one, the usual one for torch, or the lowest."""
    own = {pin.partition("==")[0]: pin for pin in chosen}
    torch = next(line for line in constraints.splitlines() if line.startswith("torch=="))
    pinned = {name: f"{name}=={version}" for name, version in bounds.items()}
    return list({**pinned, "torch": torch.split()[0], **own}.values())


def main() -> int:
    wanted = pins(
        lower_bounds((ROOT / "pyproject.toml").read_text()),
        sys.argv[1:],
        (ROOT / "constraints.txt").read_text(),
    )
    print("\n".join(wanted), flush=True)
    venv.create(FOLDER, with_pip=True, clear=True)
    file = FOLDER / "lowest.txt"
    file.write_text("\n".join(wanted) + "\n")
    python = str(FOLDER / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "-c", str(file), "-e", ".[dev]"]
    if code := subprocess.run(install, cwd=ROOT).returncode:
        return code
    return subprocess.run(
        [python, "-m", "pytest", "-n", "auto", "--dist", "loadscope"], cwd=ROOT
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
