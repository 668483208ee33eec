"""Training that trackers hear of: parameters, the metrics of every epoch, results and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lmpnn_kge.backbones.discovery import Plugin, find_tracker
from lmpnn_kge.errors import PluginError
from lmpnn_kge.methods.results import Results
from lmpnn_kge.tracker import Tracker
from lmpnn_kge.training.folder import METRICS, RUN, RunFolder
from lmpnn_kge.training.lmpnn import MODEL
from lmpnn_kge.work.listener import Epoch, Listener, PassingListener

#: The files of a finished run that trackers get, if the run has them.
FILES = ("config.yaml", MODEL, METRICS, "test.json")


def check_trackers(names: Sequence[str]) -> None:
    """PluginError if a tracker cannot be used, which is best known before the work."""
    for name in names:
        find_tracker(name).load_tracker()


@contextmanager
def tracked(names: Sequence[str], listener: Listener) -> Iterator[TrackingListener]:
    """A listener that also reports to trackers."""
    plugins = {name: find_tracker(name) for name in dict.fromkeys(names)}
    classes = {plugin: plugin.load_tracker() for plugin in plugins.values()}
    tracking = TrackingListener(listener, classes)
    try:
        yield tracking
    finally:
        tracking.each(lambda tracker: tracker.close())


class TrackingListener(PassingListener):
    """Passes everything on, and reports to trackers.

    A tracker that fails gets nothing more, which a note says: it must not stop the training.
    """

    def __init__(self, listener: Listener, classes: Mapping[Plugin, type[Tracker]]):
        super().__init__(listener)
        self.classes = classes
        self.trackers: dict[Plugin, Tracker] = {}
        self.last = 0  # the number of the last epoch

    def each(self, report: Callable[[Tracker], None]) -> None:
        """Report to every tracker that still works."""
        for plugin, tracker in list(self.trackers.items()):
            with self._guarded(plugin):
                report(tracker)

    @contextmanager
    def _guarded(self, plugin: Plugin) -> Iterator[None]:
        try:
            with plugin.isolated():
                yield
        except PluginError as error:
            self.trackers.pop(plugin, None)
            self.listener.note(f"{error}; it gets nothing more")

    def start(self, folder: Path, facts: Mapping[str, str]) -> None:
        super().start(folder, facts)
        parameters: dict[str, Any] = {**facts, **vars(RunFolder.open(folder, RUN).settings)}
        for plugin, tracker in self.classes.items():
            with self._guarded(plugin):
                self.trackers[plugin] = tracker(folder)
        self.each(lambda tracker: tracker.parameters(parameters))

    def epoch(self, epoch: Epoch) -> None:
        super().epoch(epoch)
        self.last = epoch.number
        values = {"loss": epoch.loss, "learning_rate": epoch.learning_rate}
        if epoch.queries_per_second is not None:
            values["queries_per_second"] = epoch.queries_per_second
        values |= {f"valid/{name}": value for name, value in epoch.valid.items()}
        self.each(partial(_report_metrics, values=values, step=epoch.number))

    def finish(self, folder: Path, results: Results | None) -> None:
        """Training has finished: report the results on test and the files."""
        if results is not None:
            values = {f"test/{name}": value for name, value in results.mrr.items()}
            self.each(partial(_report_metrics, values=values, step=self.last))
        for name in FILES:
            if (folder / name).is_file():
                self.each(partial(_report_file, file=folder / name))


def _report_metrics(tracker: Tracker, values: Mapping[str, float], step: int) -> None:
    tracker.metrics(values, step)


def _report_file(tracker: Tracker, file: Path) -> None:
    tracker.artefact(file)
