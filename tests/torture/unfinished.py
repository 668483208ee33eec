"""Trainings that were killed, and whose files were damaged then."""

import json
import shutil
from pathlib import Path
from random import Random

from .campaign import Campaign, Outcome, Steps, Wrong, command
from .counted import run_counted
from .damage import damage, draw_damage, is_lost, is_noticed, sample_few
from .kills import DATASET, Kills, contents, differing_files

#: Commands that resume, and the share of their file operations after which they were killed.
KILLED = {"train": 0.7, "pretrain": 0.7, "table": 0.5, "tune": 0.5}


class Unfinished(Campaign):
    """The command refuses to resume, or ends with the same files as if nothing had happened."""

    name = "unfinished"
    seconds = 120
    memory = 4 << 30
    weight = 2

    def prepare(self, inputs: Path) -> None:
        sample_few(DATASET, inputs / "queries")
        (inputs / "table.yaml").write_text("eps: {epsilon: 0.5}\n")
        for name, share in KILLED.items():
            work = inputs.parent / "case-whole"  # as deep as a case, for relative paths
            work.mkdir()
            job, log = self._job(name, inputs), inputs / "log"
            ended = run_counted(job, work, log, 0, "kill")
            if ended.code:
                raise Wrong(f"{name} does not succeed: {ended.stderr[-600:]}")
            (inputs / f"hash {name}").write_text(json.dumps(contents(work)))
            shutil.rmtree(work)
            work.mkdir()
            run_counted(job, work, log, int(share * ended.operations), "kill")
            shutil.move(work, inputs / name)

    def _job(self, name: str, inputs: Path) -> list[str]:
        return [str(part) for part in Kills().jobs(inputs)[name]]

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        name = random.choice(list(KILLED))
        return [["job", name], *draw_damage(random, inputs / name)]

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        name = next((step[1] for step in steps if step[0] == "job"), "train")
        shutil.copytree(inputs / name, scratch, dirs_exist_ok=True)
        edits = [step for step in steps if step[0] != "job"]
        for step in edits:
            damage(scratch, step)
        outcome = command(*self._job(name, inputs))
        if outcome is Outcome.ACCEPTED and all(is_noticed(e) or is_lost(e) for e in edits):
            expected = json.loads((inputs / f"hash {name}").read_text())
            differing = differing_files(contents(scratch), expected)
            # What a finished run holds besides its results need not be read.
            if unedited := [file for file in differing if file not in {e[1] for e in edits}]:
                raise Wrong(f"{name} ends with other files: {unedited}")
        return outcome
