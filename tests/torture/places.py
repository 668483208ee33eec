"""Odd arguments and impossible places, in commands that are sound without them."""

import os
from pathlib import Path
from random import Random

from ..conftest import ROOT
from .campaign import Campaign, Outcome, Steps, Wrong, command
from .damage import TINY, command_ok, sample_few
from .kills import DATASET, QUESTION, ROTATE

PLACES = (
    "/proc/x", "/proc/x/y", "/dev/full", "file/x", "file", "loop", "loop/x", "x" * 300, "", ".",
    "..", "../new", "\udcff", "-", "~", "new/", "file/", "new/deep/er", "folder",
    "folder/", "link", "link/x", "/", "//", "./././new", "new\n", "\x1b[2J", "-o", "--",
    "y" * 10**6,
)  # fmt: skip

WORDS = (
    "", " ", "nan", "-1", "0", "1e999", "9" * 5000, "z" * 10**6, "0x" + "f" * 5000, "\udcff",
    "a=b=c", "=", "hidden=", "epochs=-1", "epochs=1e99", "seed=" + "9" * 5000, "%s%n", "*",
    "{}", "[", "?", "r(", "r(a, ?)", "!r(a, ?)", "train", "1p", "x,y,,z", "&a [*a]", "\u202e",
    "None",
)  # fmt: skip


class Places(Campaign):
    name = "places"
    seconds = 90
    memory = 3 << 30
    spawns = True  # a pickle is tried out in another process
    weight = 2

    def prepare(self, inputs: Path) -> None:
        sample_few(DATASET, inputs / "queries")
        command_ok("queries", "export", inputs / "queries", "-o", inputs / "betae")
        command_ok("train", "--checkpoint", ROTATE, "--dataset", DATASET, "--queries",
                   inputs / "queries", "--out", inputs / "run", *TINY)  # fmt: skip
        command_ok("ask", inputs / "run", QUESTION)  # fits its methods
        (inputs / "table.yaml").write_text("eps: {epsilon: 0.5}\n")

    def jobs(self, inputs: Path) -> list[list[str]]:
        queries, run = inputs / "queries", inputs / "run"
        few = ["--types", "1p", "--count", "2"]
        jobs: list[list[str | Path]] = [
            ["answer", "r(a, ?)", "--dataset", DATASET],
            ["ask", run, "r(a, ?)", "--method", "lmpnn", "-k", "3"],
            ["inspect", ROTATE, "--dataset", DATASET],
            ["sample", "--dataset", DATASET, "-o", "new", *few, "--seed", "1"],
            ["split", ROOT / "tests" / "data" / "toy.tsv", "-o", "new", "--no-header"],
            ["queries", "show", queries, "--split", "test", "--type", "2p", "-n", "2"],
            ["queries", "import", inputs / "betae", "-o", "new"],
            ["queries", "export", queries, "-o", "new"],
            ["queries", "verify", queries],
            ["draw", "r(a, ?)", "-o", "new.svg"],
            ["report", run, "-o", "new"],
            ["evaluate", run, "--queries", queries, "--limit", "1", "--method", "lmpnn"],
            ["train", "--checkpoint", ROTATE, "--dataset", DATASET, "--queries", queries,
             "--out", "new", *TINY, "--set", "epochs=0"],
            ["pretrain", "--backbone", "distmult", "--dataset", DATASET, "-o", "new.pt",
             "--set", "dim=4", "--set", "epochs=0", "--set", "penalty=0.1"],
            ["predict", run, "--limit", "3", "-o", "new.tsv"],
            ["config", "show", "--set", "hidden=8"],
            ["graph", DATASET, "-n", "2", "--json"],
            ["translate", "r(a, ?)"],
            ["backbones", "new", "my-model", "-o", "new", "--type", "distance"],
            ["evaluate", "--method", "cqd-beam", "--checkpoint", ROTATE, "--dataset", DATASET,
             "--queries", queries, "--limit", "1", "--ranks", "new.csv", "--set", "beam=2"],
            ["ask", run, QUESTION, "--explain", "--witnesses", "2", "--count", "-o", "new.svg"],
            ["tune", "--checkpoint", ROTATE, "--dataset", DATASET, "--queries", queries, "--out",
             "new", "--trials", "1", "--search", "learning_rate=1e-4..1e-1,log", *TINY],
            ["table", inputs / "table.yaml", "--checkpoint", ROTATE, "--dataset", DATASET,
             "--queries", queries, "--out", "new", "--limit", "1", *TINY],
        ]  # fmt: skip
        return [[str(part) for part in job] for job in jobs]

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        jobs = self.jobs(inputs)
        steps: Steps = [["job", random.randrange(len(jobs))]]
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            odd = random.randrange(len(PLACES) + len(WORDS))
            kind = random.choice(("replace", "replace", "replace", "out", "out", "add", "drop"))
            steps.append([kind, random.random(), odd])
        return steps

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        here = scratch / "here"
        here.mkdir()
        (here / "file").write_text("mine")
        (here / "loop").symlink_to(here / "loop")
        (here / "folder").mkdir()
        (here / "folder" / "thesis.tex").write_text("mine")
        (here / "link").symlink_to(here / "folder")
        os.chdir(here)
        job = list(self.jobs(inputs)[next((s[1] for s in steps if s[0] == "job"), 0)])
        for kind, share, odd in (step for step in steps if step[0] != "job"):
            value = (*PLACES, *WORDS)[odd]
            at = 1 + int(share * (len(job) - 1))
            outs = [n for n, part in enumerate(job) if part in ("-o", "--out")]
            if kind == "out" and outs and outs[0] + 1 < len(job):
                job[outs[0] + 1] = PLACES[odd % len(PLACES)]
            elif value == "/dev/full":
                continue  # to read it would never end
            elif kind == "add":
                job.insert(at, value)
            elif kind == "drop" and len(job) > 1:
                job.pop(min(at, len(job) - 1))
            elif at < len(job):
                job[at] = value
        # `ask` answers the sound ones of several formulas, and ends with 1.
        outcome = command(*job, accept=(0, 1) if job[:1] == ["ask"] else (0,))
        self._check(here, job)
        return outcome

    def _check(self, here: Path, job: list[str]) -> None:
        """Nothing that was there may be lost, and nothing half-written may be left."""
        if (here / "folder" / "thesis.tex").read_text() != "mine":
            raise Wrong(f"{job} has overwritten a file")
        if left := [path.name for path in here.rglob("*.partial")]:
            raise Wrong(f"{job} has left {left}")
