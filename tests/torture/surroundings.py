"""Commands in odd surroundings: closed streams, a removed folder, signals, strange variables."""

import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

from .campaign import FORBIDDEN, Campaign, Outcome, Steps, Wrong
from .counted import Ended, run_counted, start, wait_counted
from .damage import TINY, command_ok, sample_few
from .kills import DATASET, FINAL, QUESTION, ROTATE, SMALL, Kills

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGUSR1", "SIGQUIT")

#: Variables of the environment that programs read, with values that nobody needs.
VARIABLES = ("HOME", "TMPDIR", "COLUMNS", "LINES", "LANG", "LC_ALL", "TERM", "NO_COLOR", "USER",
             "FORCE_COLOR", "XDG_CACHE_HOME", "MPLCONFIGDIR", "MPLBACKEND", "PATH")  # fmt: skip
VALUES = ("", "/nonexistent/x", "-1", "0", "9" * 30, "x" * 5000, "é\n", "C", "\udcff", "/dev/null")


class Signals(Kills):
    """Every command that writes gets a signal at a file operation, and then runs again."""

    name = "signals"
    weight = 2

    def count(self, inputs: Path) -> int | None:
        return None

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        points = json.loads((inputs / "points.json").read_text())
        return [[*random.choice(points), random.choice(SIGNALS)]]

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        ((name, place, name_of_signal),) = steps
        number = int(getattr(signal, name_of_signal))
        self.before(name, inputs, scratch)
        job, log = [str(part) for part in self.jobs(inputs)[name]], f"{scratch.name}.log"
        ended = run_counted(job, scratch, inputs.parent / log, place, f"signal {number}")
        check_printed(ended, (0, 1, 2, 130, 128 + number, -number))  # 130: stopped and saved
        self.run_again(name, inputs, scratch, must=ended.code != 0 or name not in FINAL)
        return ended.outcome


def check_printed(ended: Ended, codes: tuple[int, ...]) -> None:
    """Wrong if a command ended in another way, or printed what no user should read."""
    if ended.code not in codes:
        raise Wrong(f"exit code {ended.code}: {ended.stderr[-600:]}")
    if words := [word for word in FORBIDDEN if word in ended.stderr]:
        raise Wrong(f"it printed {words[0]!r}: {ended.stderr[-600:]}")


class Surroundings(Campaign):
    """A command whose streams, folder or environment are not as usual."""

    name = "surroundings"
    seconds = 120
    memory = 8 << 30
    spawns = True
    weight = 1.5

    def prepare(self, inputs: Path) -> None:
        sample_few(DATASET, inputs / "queries")
        shutil.copytree(DATASET, inputs / "dataset")
        shutil.copy(ROTATE, inputs / "rotate.pt")
        command_ok("train", "--checkpoint", inputs / "rotate.pt", "--dataset", inputs / "dataset",
                   "--queries", inputs / "queries", "--out", inputs / "run", *TINY)  # fmt: skip
        command_ok("ask", inputs / "run", QUESTION)  # fits its methods

    def jobs(self, inputs: Path) -> dict[str, list[str]]:
        run, dataset, queries = (str(inputs / name) for name in ("run", "dataset", "queries"))
        return {
            "help": ["--help"],
            "version": ["--version"],
            "wrong": ["nothing"],
            "backbones": ["backbones"],
            "config": ["config", "show"],
            "answer": ["answer", QUESTION, "--dataset", dataset],
            "ask": ["ask", run, QUESTION, "--explain"],
            "ask stdin": ["ask", run, "-"],
            "translate": ["translate", QUESTION],
            "graph": ["graph", dataset],
            "draw": ["draw", QUESTION],
            "draw -o": ["draw", QUESTION, "-o", "picture.svg"],
            "inspect": ["inspect", str(inputs / "rotate.pt"), "--json"],
            "show": ["queries", "show", queries],
            "verify": ["queries", "verify", queries],
            "sample": ["sample", "--dataset", dataset, "-o", "out", "--types", "1p", "--count",
                       "2"],
            "train": ["train", "--checkpoint", str(inputs / "rotate.pt"), "--dataset", dataset,
                      "--queries", queries, "--out", "out", *TINY],
            "pretrain": ["pretrain", "--backbone", "distmult", "--dataset", dataset, "-o", "x.pt",
                         "--set", "penalty=0.1", *SMALL],
            "split": ["split", "-", "--format", "tsv", "-o", "out"],
            "evaluate": ["evaluate", run, "--limit", "1"],
            "predict": ["predict", run, "--limit", "2"],
            "report": ["report", run, "-o", "report"],
            "refused": ["ask", run, "nobody(x, ?)"],
        }  # fmt: skip

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        steps: Steps = [["job", random.choice(list(self.jobs(inputs)))]]
        for _ in range(random.choice((1, 1, 2, 3))):
            match random.randrange(3):
                case 0:
                    how = random.choice(("closed", "full", "broken", "null", "ascii"))
                    steps.append(["stream", random.randrange(3), how])
                case 1:
                    steps.append(["variable", random.choice(VARIABLES), random.choice(VALUES)])
                case _:
                    steps.append(["folder", random.choice(("removed", "unreadable"))])
        return steps

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        job = self.jobs(inputs)[next((s[1] for s in steps if s[0] == "job"), "help")]
        folder, log = scratch / "here", scratch / "log"
        folder.mkdir()
        ended = wait_counted(start(job, folder, log, lambda: surround(steps, folder)))
        check_printed(ended, (0, 1, 2, 120))  # 120 is Python's for a stream that cannot be flushed
        return ended.outcome


def surround(steps: Steps, folder: Path) -> None:
    """Change the surroundings of this process."""
    for kind, *what in steps:
        if kind == "stream":
            change_stream(*what)
        elif kind == "variable":
            os.environ[what[0]] = what[1]
        elif kind == "folder" and folder.exists():
            folder.rmdir() if what[0] == "removed" else folder.chmod(0)


def change_stream(number: int, how: str) -> None:
    name, mode = ("stdin", "stdout", "stderr")[number], "rw"[number > 0]
    if how == "closed":
        setattr(sys, name, None)
        with suppress(OSError):  # if it is closed already
            os.close(number)
        return
    if how == "broken":
        ends = os.pipe()
        kept = os.dup(ends[number > 0])
        for end in ends:  # one of them may have the number of a stream that was closed before
            os.close(end)
        os.dup2(kept, number)
    elif how in ("full", "null"):
        device = os.open("/dev/full" if how == "full" else os.devnull, os.O_RDWR)
        os.dup2(device, number)
    elif not is_open(number):
        return
    encoding = "ascii" if how == "ascii" else "utf-8"
    errors = "strict" if how == "ascii" else None
    setattr(sys, name, os.fdopen(number, mode, encoding=encoding, errors=errors, closefd=False))


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
