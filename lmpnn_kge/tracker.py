"""The contract of a tracker, which records a training for another program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class Tracker:
    """Records parameters, metrics and files of one training; subclass it.

    A tracker is made when training starts, or when it continues after it was stopped, with the run
    folder. All methods have a default that does nothing.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def parameters(self, values: Mapping[str, str | int | float | bool | None]) -> None:
        """All settings, and what is trained on what, once at the start."""

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Numbers after an epoch, such as `loss` and `valid/A_P`; at the end those on test."""

    def artefact(self, file: Path) -> None:
        """A file that a finished training made."""

    def close(self) -> None:
        """Training has finished or was stopped; nothing follows."""
