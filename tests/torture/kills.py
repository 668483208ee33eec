"""A kill at every file operation.

A case starts a command in a process of its own that is killed at its N-th operation on a file that
is written. Then the same command runs undisturbed. It must succeed, leave the same files as if
nothing had happened, and nothing else.
"""

import hashlib
import json
import shutil
import signal
from pathlib import Path
from random import Random

from ..conftest import ROOT, TOY
from .campaign import Campaign, Outcome, Steps, Wrong, check_message
from .counted import Ended, run_counted
from .damage import TINY, command_ok, is_readable, sample_few

ROTATE = TOY / "checkpoints" / "rotate.package.pt"
DATASET = TOY / "dataset"

QUESTION = 'friend_of("person/ada_voss", ?)'

SMALL = [
    part
    for pair in ("dim=4", "epochs=1", "batch_size=64", "validation_triples=8")
    for part in ("--set", pair)
]


#: Commands that refuse to write over what they have written.
FINAL = ("export", "new")

#: Lines of JSON that differ between two equal runs.
VARYING = ('"started"', '"queries_per_second"', '"checksum"')


class Kills(Campaign):
    """Every command that writes, killed at each of its file operations."""

    name = "kills"
    mode = "kill"
    seconds = 300
    memory = 8 << 30
    spawns = True
    weight = 8

    def jobs(self, inputs: Path) -> dict[str, list[str | Path]]:
        """Commands by name; each writes to the current folder."""
        queries = inputs / "queries"
        train = ["train", "--checkpoint", ROTATE, "--dataset", DATASET, "--queries", queries]
        few = ["--types", "1p,2in", "--count", "4"]
        return {
            "split": ["split", ROOT / "tests" / "data" / "toy.tsv", "-o", "out", "--no-header"],
            "sample": ["sample", "--dataset", DATASET, "-o", "out", *few],
            "sample over": ["sample", "--dataset", DATASET, "-o", "old", *few],
            "import": ["queries", "import", inputs / "betae", "-o", "out"],
            "export": ["queries", "export", queries, "-o", "out"],
            "pretrain": ["pretrain", "--backbone", "distmult", "--dataset", DATASET, "-o", "out.pt",
                         "--resume", *SMALL, "--set", "penalty=0.01"],
            "train": [*train, "--out", "out", "--resume", *TINY],
            "report": ["report", inputs / "run", "-o", "out"],
            "table": ["table", inputs / "table.yaml", "--checkpoint", ROTATE, "--dataset", DATASET,
                      "--queries", queries, "--out", "out", *TINY],
            "tune": ["tune", *train[1:], "--search", "learning_rate=1e-4..1e-1,log", "--trials",
                     "1", "--out", "out", *TINY],
            "ask": ["ask", "run", QUESTION, "--checkpoint", ROTATE, "--dataset", DATASET],
            "evaluate": ["evaluate", "--method", "search", "--checkpoint", "rotate.pt", "--dataset",
                         DATASET, "--queries", queries, "--ranks", "ranks.csv"],
            "predict": ["predict", "--checkpoint", ROTATE, "--dataset", DATASET, "-o", "out.tsv"],
            "draw": ["draw", QUESTION, "-o", "out.svg"],
            "new": ["backbones", "new", "my-model", "-o", "out"],
        }  # fmt: skip

    def prepare(self, inputs: Path) -> None:
        sample_few(DATASET, inputs / "queries")
        command_ok("queries", "export", inputs / "queries", "-o", inputs / "betae")
        (inputs / "table.yaml").write_text("eps: {epsilon: 0.5}\n")
        command_ok("train", "--checkpoint", ROTATE, "--dataset", DATASET, "--queries",
                   inputs / "queries", "--out", inputs / "run", *TINY)  # fmt: skip
        points = []
        for name in self.jobs(inputs):
            scratch = inputs.parent / "case-whole"  # as deep as a case, for relative paths
            scratch.mkdir()
            self.before(name, inputs, scratch)
            count = self.start(name, inputs, scratch, 0, must=True).operations
            (inputs / f"hash {name}").write_text(json.dumps(contents(scratch)))
            points += [[name, place] for place in range(1, count + 1)]
            shutil.rmtree(scratch)
        Random(self.seed).shuffle(points)
        (inputs / "points.json").write_text(json.dumps(points))

    def before(self, name: str, inputs: Path, scratch: Path) -> None:
        """What is there before a command runs."""
        match name:
            case "sample over":
                shutil.copytree(inputs / "queries", scratch / "old")
            case "ask":
                for folder in ("run", "queries"):  # on which it fits, and which it finds beside it
                    shutil.copytree(inputs / folder, scratch / folder)
            case "evaluate":
                shutil.copy(ROTATE, scratch / "rotate.pt")

    def count(self, inputs: Path) -> int | None:
        return len(json.loads((inputs / "points.json").read_text()))

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        return [json.loads((inputs / "points.json").read_text())[number]]

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        ((name, place),) = steps
        self.before(name, inputs, scratch)
        ended = self.start(name, inputs, scratch, place)
        self.check_ended(ended)
        self.run_again(name, inputs, scratch, must=ended.code != 0 or name not in FINAL)
        return ended.outcome

    def run_again(self, name: str, inputs: Path, scratch: Path, must: bool) -> None:
        """Run a command undisturbed; Wrong if it leaves other files than it always does."""
        self.start(name, inputs, scratch, 0, must=must)
        expected = json.loads((inputs / f"hash {name}").read_text())
        if differing := differing_files(contents(scratch), expected):
            raise Wrong(f"{name} leaves other files after the next run: {differing}")

    def check_ended(self, ended: Ended) -> None:
        if ended.code not in (0, -signal.SIGKILL):
            raise Wrong(f"exit code {ended.code}: {ended.stderr[-500:]}")

    def start(
        self, name: str, inputs: Path, scratch: Path, place: int, must: bool = False
    ) -> Ended:
        """Run a command that is stopped at an operation, or undisturbed at 0."""
        job = [str(part) for part in self.jobs(inputs)[name]]
        ended = run_counted(job, scratch, inputs.parent / f"{scratch.name}.log", place, self.mode)
        if must and ended.code:
            raise Wrong(f"{name} does not succeed: {ended.stderr[-600:]}")
        return ended


class KilledDemo(Kills):
    """The demonstration, which takes as long as all the other commands together."""

    name = "killed-demo"
    seconds = 900
    weight = 2

    def jobs(self, inputs: Path) -> dict[str, list[str | Path]]:
        return {"demo": ["demo", "--out", "out", "--backbone", "distmult"]}


def check_refused(ended: Ended) -> None:
    """Wrong if a command neither succeeded nor said in one line which file it could not use."""
    if ended.code == 0:
        return
    if ended.code != 2:
        raise Wrong(f"exit code {ended.code}: {ended.stderr[-600:]}")
    check_message(ended.stderr)
    if "Error: standard output" in ended.stderr:
        raise Wrong(f"nothing is wrong with standard output: {ended.stderr[-500:]}")


def differing_files(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """The files that only one of two folders has, or that have other contents there."""
    return sorted(k for k in {*found, *expected} if found.get(k) != expected.get(k))


def contents(folder: Path) -> dict[str, str]:
    """A hash of every file, without times and without what differs between two equal runs."""
    hashes = {}
    for file in sorted(folder.rglob("*")):
        if is_readable(file):
            hashes[str(file.relative_to(folder))] = hashlib.sha256(_stable(file)).hexdigest()
        elif not file.is_dir():
            hashes[str(file.relative_to(folder))] = "not a file"
        elif not any(file.iterdir()):
            hashes[str(file.relative_to(folder))] = "an empty folder"
    return hashes


def _stable(file: Path) -> bytes:
    if file.suffix == ".html" or file.suffix == ".md" or file.suffix == ".svg":
        return b""  # they show the speed
    if file.name == "study.db":
        return b""  # Optuna's, with times; what was found is in result.json
    content = file.read_bytes()
    if file.suffix in (".json", ".jsonl"):
        return "\n".join(map(_without_times, content.decode().splitlines())).encode()
    if file.name == "state.safetensors":
        length = int.from_bytes(content[:8], "little")
        return content[8 + length :]
    return content


def _without_times(line: str) -> str:
    return "" if any(word in line for word in VARYING) else line
