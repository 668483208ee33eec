"""The report on a run as a page, which is drawn again only if the folder of the run has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lmpnn_kge.reports.document import to_html
from lmpnn_kge.reports.report import make_report
from lmpnn_kge.work.deadline import STOPPING, check_time

#: The files of a folder, each with its time and size.
State = frozenset[tuple[str, int, int]]

#: The settings of matplotlib are those of the process: only one thread can draw.
_drawing = threading.Lock()


class RunReport:
    """The report on one run."""

    def __init__(self, name: str, folder: Path):
        self.name, self.folder = name, folder
        self._drawn: tuple[State | None, str] | None = None

    def page(self) -> str:
        """The page, as the folder is now."""
        state = _state(self.folder)
        with _alone():
            if self._drawn is None or state is None or self._drawn[0] != state:
                self._drawn = state, to_html(make_report({self.name: self.folder}))
            return self._drawn[1]


def _state(folder: Path) -> State | None:
    """The state of a folder; None if it is gone, or loses a file at this moment."""
    try:
        stats = {file.name: file.stat() for file in folder.iterdir()}
    except FileNotFoundError:
        return None
    return frozenset((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats.items())


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other thread draws, as long as there is time."""
    while not _drawing.acquire(timeout=STOPPING):
        check_time()
    try:
        yield
    finally:
        _drawing.release()
