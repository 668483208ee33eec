"""Runs campaigns: workers side by side, stopped when they hang, and failures made smaller."""

import json
import os
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from .campaign import Campaign, Outcome, Steps
from .worker import Worker, prepare, run_numbers, run_steps

#: Seconds in which the inputs of a campaign must be made.
PREPARATION = 600

#: How often a failing case is run again to make it smaller, and how many failures are.
ATTEMPTS, MINIMISED = 40, 5

ENDED = "the process ended"


@dataclass
class Tally:
    """How the cases of a campaign ended."""

    campaign: str
    refused: int = 0
    accepted: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return self.refused + self.accepted + len(self.failures)

    def add(self, number: int, steps: Steps, report: dict[str, str]) -> None:
        if "failure" in report:
            self.failures.append({"case": number, "steps": steps, "reason": report["failure"]})
        elif report["outcome"] == Outcome.REFUSED.value:
            self.refused += 1
        else:
            self.accepted += 1

    def __str__(self) -> str:
        counts = (self.tried, self.refused, self.accepted, len(self.failures))
        return f"{self.campaign:<14}" + "".join(f"{number:>10,}" for number in counts)


HEADER = f"{'campaign':<14}" + "".join(
    f"{word:>10}" for word in ("tried", "refused", "accepted", "failed")
)


@dataclass
class Siege:
    """A campaign with its seed, the folder of its inputs, and where its failures go."""

    campaign: Campaign
    seed: int
    inputs: Path
    failures: Path
    workers: int = os.cpu_count() or 1

    def run(self, seconds: float, cases: int | None = None) -> Tally:
        """Run cases until the time or the cases are up, and keep the failures."""
        self.prepare()
        tally = Tally(self.campaign.name)
        total = self.campaign.count(self.inputs)
        most = min((n for n in (cases, total) if n is not None), default=None)
        deadline = time.monotonic() + seconds
        turns = [_turn(self, first, most) for first in range(self.workers)]
        running = {worker.reading: worker for worker in map(next, turns) if worker is not None}
        owner = dict(zip(running, turns, strict=False))
        current: dict[int, tuple[int, Steps, float]] = {}
        while running and time.monotonic() < deadline:
            now = time.monotonic()
            waits = [begun + self.campaign.seconds - now for _, _, begun in current.values()]
            ready, _, _ = select.select(list(running), [], [], max(0, min([1, *waits])))
            for reading in list(running):
                ended = None
                if reading in ready:
                    reports = running[reading].reports()
                    ended = None if reports is not None else ENDED
                    for report in reports or ():
                        if "start" in report:
                            current[reading] = report["start"], report["steps"], time.monotonic()
                        else:
                            number, steps, _ = current.pop(reading)
                            tally.add(number, steps, report)
                elif reading in current:
                    late = time.monotonic() - current[reading][2] > self.campaign.seconds
                    ended = f"no end after {self.campaign.seconds:g} s" if late else None
                if ended is None:
                    continue
                worker, turn = running.pop(reading), owner.pop(reading)
                status = worker.wait() if ended == ENDED else worker.stop()
                last = None
                if reading in current:
                    last, steps, _ = current.pop(reading)
                    tally.add(last, steps, {"failure": _ending(ended, status)})
                elif status:
                    raise RuntimeError(f"{self.campaign.name}: a case could not be drawn")
                following = turn.send(last)
                if following is not None:
                    running[following.reading], owner[following.reading] = following, turn
        for worker in running.values():
            worker.stop()
        self._keep(tally)
        return tally

    def prepare(self) -> None:
        self.campaign.seed = self.seed
        worker = prepare(self.campaign, self.inputs)
        ended = select.select([worker.reading], [], [], PREPARATION)[0]
        if worker.wait() if ended else worker.stop():
            raise RuntimeError(f"{self.campaign.name}: its inputs were not made")

    def repeat(self, steps: Steps) -> str | None:
        """How one case fails; None if it does not."""
        worker = run_steps(self.campaign, steps, self.inputs)
        deadline, ended, found = time.monotonic() + self.campaign.seconds, ENDED, None
        while True:
            left = deadline - time.monotonic()
            if not select.select([worker.reading], [], [], max(0, left))[0]:
                ended = f"no end after {self.campaign.seconds:g} s"
                break
            reports = worker.reports()
            if reports is None:
                break
            found = next((report for report in reports if "end" in report), found)
        status = worker.wait() if ended == ENDED else worker.stop()
        if found is None:
            return _ending(ended, status)
        return found.get("failure")

    def _keep(self, tally: Tally) -> None:
        """Write the failures, the first of each kind made smaller."""
        kinds: set[str] = set()
        for failure in tally.failures:
            kind = kind_of(failure["reason"])
            if kind not in kinds and len(kinds) < MINIMISED:
                failure["steps"] = self._minimised(failure["steps"], kind)
            kinds.add(kind)
            name = f"{self.campaign.name}-{self.seed}-{failure['case']}.json"
            file = self.failures / name
            failure |= {"campaign": self.campaign.name, "seed": self.seed}
            failure["command"] = f"python -m tests.torture --repeat {file}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(failure, indent=1) + "\n")

    def _minimised(self, steps: Steps, kind: str) -> Steps:
        """The fewest steps found that fail in the same way: leave out halves, quarters, …"""
        attempts, size = ATTEMPTS, max(1, len(steps) // 2)
        while attempts and len(steps) > 1:
            for start in range(0, len(steps), size):
                fewer = steps[:start] + steps[start + size :]
                attempts -= 1
                if fewer and kind_of(self.repeat(fewer) or "") == kind:
                    steps = fewer
                    break
                if not attempts:
                    break
            else:
                if size == 1:
                    break
                size = max(1, size // 2)
            size = min(size, max(1, len(steps) // 2))
        return steps


def _turn(siege: Siege, first: int, most: int | None) -> Iterator[Worker | None]:
    """Workers for every n-th case, each after the last one of the worker before."""
    while True:
        step = siege.workers
        numbers = count(first, step) if most is None else range(first, most, step)
        if most is not None and first >= most:
            yield None
            return
        last = yield run_numbers(siege.campaign, numbers, siege.seed, siege.inputs)
        if last is None:  # all its cases are done
            yield None
            return
        first = last + step


def _ending(ended: str, status: int) -> str:
    if ended != ENDED:
        return ended
    if os.WIFSIGNALED(status):
        return f"{ended} by signal {os.WTERMSIG(status)}"
    return f"{ended} with code {os.waitstatus_to_exitcode(status)}"


def kind_of(reason: str) -> str:
    """What two failures of the same kind share: the exception and the place."""
    head, _, place = reason.partition(" [")
    return f"{head.partition(':')[0]} {place.partition(' ')[0]}"
