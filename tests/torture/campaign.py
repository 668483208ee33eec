"""What a campaign is: it makes sound inputs once, draws cases from a seed, and runs them.

A case is a list of steps, which JSON can hold, such as the edits of a file or the words of a
formula. A failing case is made smaller by leaving steps out, so each step should make sense without
the others.
"""

import traceback
from abc import ABC, abstractmethod
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

from click.testing import CliRunner

Steps = list[Any]


class Outcome(Enum):
    """How a case ends if nothing is wrong."""

    REFUSED = "refused"
    ACCEPTED = "accepted"


class Wrong(Exception):
    """A case that fails: the text says how."""


class Campaign(ABC):
    """Cases of one kind. An exception that `run` does not catch makes its case fail."""

    name: str
    #: Seconds and bytes that a case may take; the process is stopped if it takes more.
    seconds: float = 20
    memory: int = 1 << 30
    #: Share of the time of all campaigns.
    weight: float = 1
    #: Whether the cases may start processes.
    spawns: bool = False
    #: Whether the cases may connect to a server of their own.
    connects: bool = False
    #: The seed of the siege, for the order of cases that can all be tried.
    seed: int = 0

    def prepare(self, inputs: Path) -> None:  # noqa: B027  # not every campaign has inputs
        """Write the sound inputs that the cases start from."""

    def count(self, inputs: Path) -> int | None:
        """The number of cases, if all can be tried; None if there is no end to them."""
        return None

    @abstractmethod
    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        """The case of this number; `random` depends only on the seed and the number."""

    @abstractmethod
    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        """Run a case in an empty folder; raise Wrong, or anything else, if it fails."""


#: Words that no message for a user may have.
FORBIDDEN = ("Traceback", "weights_only", "out of memory", "RecursionError", "MemoryError")

#: The longest message for a user, in characters.
LONGEST = 4000


def command(*arguments: str | Path, accept: tuple[int, ...] = (0,)) -> Outcome:
    """Run a command of lmpnn-kge in this process, and check how it ends."""
    return output(*arguments, accept=accept)[0]


def output(
    *arguments: str | Path, accept: tuple[int, ...] = (0,), scarce: bool = False
) -> tuple[Outcome, str]:
    """The same, and what the command printed as its result.

    scarce: whether the memory may be too small for what the command was asked for.
    """
    from lmpnn_kge.cli import main

    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code in accept:
        return Outcome.ACCEPTED, result.stdout
    if result.exit_code != 2:
        raise Wrong(f"exit code {result.exit_code}: {result.output[-500:]}")
    stderr = result.stderr.replace("Error: out of memory", "Error: ") if scarce else result.stderr
    check_message(stderr)
    return Outcome.REFUSED, result.stdout


def check_message(stderr: str) -> None:
    """Wrong if what a refused command printed is not one short line that a user can read."""
    if stderr.startswith("Usage: ") and "\nCommands:\n" in stderr:
        return  # a group without a command prints its help
    # `ask` names each wrong one of several questions before it fails as a whole.
    lines = [line for line in stderr.splitlines() if not line.startswith("Error: question ")]
    errors = [line for line in lines if line.startswith("Error: ")]
    if len(errors) != 1:
        raise Wrong(f"{len(errors)} lines begin with 'Error: ': {stderr[-500:]}")
    if words := [word for word in FORBIDDEN if word in stderr]:
        raise Wrong(f"the message says {words[0]!r}: {stderr[-500:]}")
    if len(stderr) > LONGEST:
        raise Wrong(f"the message has {len(stderr)} characters: {stderr[:200]}")


def reason(error: BaseException) -> str:
    """How a case failed: the exception, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames[-4:]]
    return f"{type(error).__name__}: {str(error)[:1000]} [{' < '.join(reversed(places))}]"
