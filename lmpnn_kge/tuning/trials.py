"""Trials that are stopped early if others were better on valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmpnn_kge.work.listener import Epoch, Listener, PassingListener

if TYPE_CHECKING:
    from optuna.trial import Trial


class Pruned(Exception):
    """A trial that is not worth more epochs."""


class TrialListener(PassingListener):
    """Passes everything on, and reports every validation to a trial of Optuna."""

    def __init__(self, listener: Listener, trial: Trial):
        super().__init__(listener)
        self.trial = trial

    def report(self, value: float, epoch: int) -> None:
        """A validation; Pruned if the trial should stop."""
        self.trial.report(value, epoch)
        if self.trial.should_prune():
            raise Pruned

    def epoch(self, epoch: Epoch) -> None:
        super().epoch(epoch)
        if epoch.value is not None:
            self.report(epoch.value, epoch.number)
