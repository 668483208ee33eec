"""How long work reports what it does: to a progress bar, a log, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: A few words on how a task stands, made only when somebody shows them: they may be costly.
Detail = Callable[[], str]


@dataclass(frozen=True)
class Epoch:
    """A finished epoch of training."""

    number: int  # from 1
    epochs: int  # that training takes in all
    loss: float
    learning_rate: float
    queries_per_second: float | None
    valid: Mapping[str, float] = field(default_factory=dict)  # main metrics, as fractions
    value: float | None = None  # what training maximises, if it was validated


class Listener:
    """Hears of long work and ignores it; subclass it to show or record something."""

    def note(self, text: str) -> None:
        """Something that the user should know now."""

    def start(self, folder: Path, facts: Mapping[str, str]) -> None:
        """Training starts in a folder, with these inputs."""

    def begin(self, task: str, total: int | None = None, done: int = 0) -> None:
        """A task begins; total is its number of steps, if known, of which some may be done."""

    def advance(self, steps: int = 1, detail: Detail | None = None) -> None:
        """The task has made progress."""

    def epoch(self, epoch: Epoch) -> None:
        """An epoch is finished and saved."""


class PassingListener(Listener):
    """Passes everything on to another listener; subclass it to do more."""

    def __init__(self, listener: Listener):
        self.listener = listener

    def note(self, text: str) -> None:
        self.listener.note(text)

    def start(self, folder: Path, facts: Mapping[str, str]) -> None:
        self.listener.start(folder, facts)

    def begin(self, task: str, total: int | None = None, done: int = 0) -> None:
        self.listener.begin(task, total, done)

    def advance(self, steps: int = 1, detail: Detail | None = None) -> None:
        self.listener.advance(steps, detail)

    def epoch(self, epoch: Epoch) -> None:
        self.listener.epoch(epoch)


SILENT = Listener()
