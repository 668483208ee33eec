"""The temporary folder of an engine, for results that do not fit in memory."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from lmpnn_kge.files.leftovers import aside, claimed, lock, remove_leftovers


def spill_folder(cleanup: ExitStack) -> Path | None:
    """A new folder, which the clean-up removes; None if the temporary folder cannot be written.

    It also removes what killed processes left.
    """
    name = Path(tempfile.gettempdir()) / "lmpnn-kge-results"
    remove_leftovers(name)
    folder = aside(name)
    cleanup.enter_context(claimed(folder))
    try:
        folder.mkdir(mode=0o700)
    except OSError:  # results must then fit in memory
        return None
    cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
    if sys.platform != "win32":  # which cannot open a folder
        descriptor = os.open(folder, os.O_RDONLY)
        cleanup.callback(os.close, descriptor)
        lock(descriptor)  # so that other processes see that this one uses the folder
    return folder
