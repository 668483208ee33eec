"""Progress for people: a bar on a terminal, and lines on standard error anywhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from lmpnn_kge.errors import printable
from lmpnn_kge.work.listener import Detail, Epoch, Listener
from lmpnn_kge.work.repeat import repeating

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds between two looks at a detail, each of which may wait for the device.
GLANCE = 0.5

#: Seconds between two lines about one task if there is no terminal to draw a bar on.
PLAIN = 30.0

#: Seconds after which a line is printed even if the work has not reported anything.
BEAT = 30.0


@contextmanager
def terminal() -> Iterator[TerminalListener]:
    """A listener that shows progress while the block runs."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),  # a type may be called [/b]
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=console, disable=not console.is_terminal)
    # Without a terminal it is never started: old versions of rich end it with an empty line.
    with nullcontext() if progress.disable else progress:
        listener = TerminalListener(progress)
        # Without a bar, a line now and then, even if the work itself does not report.
        with repeating(listener.beat, BEAT) if progress.disable else nullcontext():
            try:
                yield listener
            finally:
                progress.update(listener.bar, visible=False)  # its last state says nothing any more


class TerminalListener(Listener):
    """Shows what long work does."""

    def __init__(self, progress: Progress):
        self.progress = progress
        self.folder: Path | None = None  # of the training that was started last
        self.facts: Mapping[str, str] = {}
        self.bar = progress.add_task("", visible=False)
        self.task, self.done = "", 0
        self.total: int | None = None
        self.glanced = self.printed = 0.0

    def line(self, text: str) -> None:
        """Print a line, above the bar if there is one; a terminal wraps it between words."""
        console = self.progress.console
        soft = not console.is_terminal
        console.print(printable(text), highlight=False, markup=False, soft_wrap=soft)

    def note(self, text: str) -> None:
        self.line(f"note: {text}")

    def start(self, folder: Path, facts: Mapping[str, str]) -> None:
        self.folder = folder
        for name, text in facts.items():
            if self.facts.get(name) != text:  # the runs of a table share most of them
                self.line(f"{name:<9} {text}")
        self.facts = facts
        self.line(f"{'run':<9} {folder}")

    def begin(self, task: str, total: int | None = None, done: int = 0) -> None:
        self.task, self.done, self.total = printable(task), done, total
        self.printed = time.monotonic()
        self.progress.reset(
            self.bar, total=total, completed=done, description=self.task, visible=True
        )

    def advance(self, steps: int = 1, detail: Detail | None = None) -> None:
        self.done += steps
        self.progress.advance(self.bar, steps)
        now = time.monotonic()
        if self.progress.disable:
            if now - self.printed > PLAIN:
                self._print_state(detail)
        elif now - self.glanced > GLANCE:
            self.glanced = now
            self.progress.update(self.bar, description=self._described(detail))

    def beat(self) -> None:
        """Print how far the work is, unless it has just said so itself."""
        if time.monotonic() - self.printed > PLAIN / 2:
            self._print_state()

    def _print_state(self, detail: Detail | None = None) -> None:
        self.printed = time.monotonic()
        of = "" if self.total is None else f" of {self.total:,}"
        count = f": {self.done:,}{of}" if self.task else ""
        self.line(f"{self._described(detail) or 'working'}{count}")

    def _described(self, detail: Detail | None) -> str:
        return self.task if detail is None else f"{self.task} · {printable(detail())}"

    def epoch(self, epoch: Epoch) -> None:
        text = f"epoch {epoch.number:>3}/{epoch.epochs}  loss {epoch.loss:.4f}"
        if epoch.queries_per_second:
            text += f"  {epoch.queries_per_second:,.0f} queries/s"
        if epoch.valid:
            text += "  valid " + " ".join(f"{k} {100 * v:.1f}" for k, v in epoch.valid.items())
        self.line(text)
