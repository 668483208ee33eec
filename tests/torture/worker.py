"""A child process that runs cases under limits and reports each of them through a pipe."""

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from .campaign import Campaign, Steps, Wrong, reason

#: Events of Python's audit that no case may cause, because only code from a file would.
NEVER = (
    "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pty.spawn",
    "subprocess.Popen", "socket.connect", "socket.bind", "socket.getaddrinfo", "webbrowser.open",
)  # fmt: skip

#: Those that a campaign which starts processes causes itself.
PROCESSES = ("os.fork", "os.posix_spawn", "os.exec", "subprocess.Popen")

#: Those that a campaign which asks a server causes itself.
CONNECTIONS = ("socket.connect", "socket.getaddrinfo")


class Worker:
    """A process that has been started, and what it has reported."""

    def __init__(self, work: Callable[[Callable[[dict[str, Any]], None]], None]):
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(reading)
            os.setpgid(0, 0)  # so that its own children can be stopped with it
            code = 1
            try:
                with os.fdopen(writing, "w") as stream:
                    work(lambda report: print(json.dumps(report), file=stream, flush=True))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writing)
        self.reading, self.rest = reading, b""

    def reports(self) -> list[dict[str, Any]] | None:
        """What has arrived since; None at the end. It waits if nothing has arrived."""
        part = os.read(self.reading, 1 << 16)
        if not part:
            return None
        *lines, self.rest = (self.rest + part).split(b"\n")
        return [json.loads(line) for line in lines]

    def stop(self) -> int:
        """End the process with all that it started, and return its status."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        """The status of a process that has ended by itself."""
        os.close(self.reading)
        return os.waitpid(self.pid, 0)[1]


def prepare(campaign: Campaign, inputs: Path) -> Worker:
    """Make the inputs of a campaign, in a process of its own so that this one stays small."""

    def work(report: Callable[[dict[str, Any]], None]) -> None:
        inputs.mkdir(parents=True)
        campaign.prepare(inputs)

    return Worker(work)


def run_numbers(campaign: Campaign, numbers: Iterable[int], seed: int, inputs: Path) -> Worker:
    """Run the cases of some numbers, one after the other."""

    def work(report: Callable[[dict[str, Any]], None]) -> None:
        guard = Guard(campaign)
        for number in numbers:
            steps = campaign.draw(number, Random(f"{seed} {campaign.name} {number}"), inputs)
            report({"start": number, "steps": steps})
            report({"end": number, **guard.run(steps, inputs)})

    return Worker(work)


def run_steps(campaign: Campaign, steps: Steps, inputs: Path) -> Worker:
    """Run one case."""

    def work(report: Callable[[dict[str, Any]], None]) -> None:
        report({"start": 0, "steps": steps})
        report({"end": 0, **Guard(campaign).run(steps, inputs)})

    return Worker(work)


class Guard:
    """Limits the memory of this process, and notices what no case may do."""

    def __init__(self, campaign: Campaign):
        self.campaign = campaign
        self.noticed: list[str] = []
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + campaign.memory,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        allowed = (self.campaign.spawns and event in PROCESSES) or (
            self.campaign.connects and event in CONNECTIONS
        )
        if event in NEVER and not allowed:
            self.noticed.append(f"{event}{arguments!r}"[:200])
            raise Wrong(f"the case caused {self.noticed[-1]}")

    def run(self, steps: Steps, inputs: Path) -> dict[str, str]:
        """The outcome of a case, or its failure."""
        scratch = Path(tempfile.mkdtemp(prefix="case-", dir=inputs.parent))
        os.chdir(scratch)
        try:
            outcome = self.campaign.run(steps, inputs, scratch)
            if self.noticed:  # and what it raised was caught
                return {"failure": f"the case caused {self.noticed.pop()}"}
            return {"outcome": outcome.value}
        except BaseException as error:
            return {"failure": reason(error)}
        finally:
            os.chdir(inputs)
            shutil.rmtree(scratch, ignore_errors=True)
