"""Two processes on one folder, and files that vanish under a running process."""

import shutil
from pathlib import Path
from random import Random

from .campaign import Campaign, Outcome, Steps, Wrong
from .counted import run_counted, start_counted, wait_counted, wait_stopped
from .damage import TINY, command_ok, sample_few
from .kills import DATASET, FINAL, QUESTION, ROTATE, SMALL, Kills, check_refused


class TwoProcesses(Kills):
    """Every command that writes, twice at the same time."""

    name = "two-processes"
    weight = 2

    def count(self, inputs: Path) -> int | None:
        return None

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        return [[random.choice(list(self.jobs(inputs))), random.randrange(1, 60)]]

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        ((name, place),) = steps
        self.before(name, inputs, scratch)
        job = [str(part) for part in self.jobs(inputs)[name]]
        # The first one stops at an operation until the second one has ended.
        logs = [scratch.parent / f"{scratch.name}.{number}" for number in (1, 2)]
        first = start_counted(job, scratch, logs[0], place, "stop")
        status = wait_stopped(first)
        late = run_counted(job, scratch, logs[1], 0, "kill")
        early = wait_counted(first, status)
        for ended in (early, late):
            check_refused(ended)
        if early.code and late.code:
            raise Wrong(f"both were refused: {early.stderr[-200:]} / {late.stderr[-200:]}")
        self.run_again(name, inputs, scratch, must=name not in FINAL)
        return Outcome.ACCEPTED


class Vanishing(Campaign):
    """A command whose inputs or outputs are removed at one of its file operations."""

    name = "vanishing"
    seconds = 120
    memory = 8 << 30
    spawns = True
    weight = 2

    def prepare(self, inputs: Path) -> None:
        sample_few(DATASET, inputs / "queries")
        shutil.copytree(DATASET, inputs / "dataset")
        shutil.copy(ROTATE, inputs / "rotate.pt")
        (inputs / "table.yaml").write_text("eps: {epsilon: 0.5}\n")
        command_ok("train", "--checkpoint", inputs / "rotate.pt", "--dataset", inputs / "dataset",
                   "--queries", inputs / "queries", "--out", inputs / "run", *TINY)  # fmt: skip

    def jobs(self) -> dict[str, list[str]]:
        train = ["train", "--checkpoint", "rotate.pt", "--dataset", "dataset", "--queries",
                 "queries", "--out", "out", *TINY]  # fmt: skip
        return {
            "train": train,
            "sample": ["sample", "--dataset", "dataset", "-o", "queries", "--types", "1p",
                       "--count", "3"],
            "evaluate": ["evaluate", "run"],
            "report": ["report", "run", "-o", "out"],
            "export": ["queries", "export", "queries", "-o", "out"],
            "pretrain": ["pretrain", "--backbone", "distmult", "--dataset", "dataset", "-o",
                         "out.pt", *SMALL, "--set", "penalty=0.1"],
            "show": ["queries", "show", "queries", "--type", "2p"],
            "ask": ["ask", "run", QUESTION, "--explain"],
            "predict": ["predict", "run", "-o", "out/new.tsv", "--limit", "5"],
            "table": ["table", "table.yaml", *train[1:]],
            "tune": ["tune", *train[1:], "--search", "hidden=4..8", "--trials", "1"],
        }  # fmt: skip

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        victims = ("queries", "dataset", "rotate.pt", "run", "out", "out.pt.training", "random",
                   "table.yaml")  # fmt: skip
        name = random.choice(list(self.jobs()))
        return [[name, random.randrange(1, 80), random.choice(victims), random.random()]]

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        ((name, place, victim, share),) = steps
        work = scratch / "work"
        shutil.copytree(inputs, work)
        if victim == "random":
            files = sorted(path for path in work.rglob("*") if path.is_file())
            victim = str(files[int(share * len(files))].relative_to(work))
        log = scratch / "log"
        ended = run_counted(self.jobs()[name], work, log, place, f"remove {work / victim}")
        check_refused(ended)
        return ended.outcome


class Pairs(Vanishing):
    """One command stops at a file operation until another one has ended that uses its folders."""

    name = "pairs"

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        names = list(self.jobs())
        return [[random.choice(names), random.randrange(1, 80), random.choice(names)]]

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        ((name, place, other),) = steps
        work = scratch / "work"
        shutil.copytree(inputs, work)
        first = start_counted(self.jobs()[name], work, scratch / "first", place, "stop")
        status = wait_stopped(first)
        late = run_counted(self.jobs()[other], work, scratch / "second", 0, "kill")
        early = wait_counted(first, status)
        for ended in (early, late):
            check_refused(ended)
        if left := [path.name for path in work.rglob("*.partial")]:
            raise Wrong(f"{name} and {other} have left {left}")
        return Outcome.REFUSED if early.code or late.code else Outcome.ACCEPTED
