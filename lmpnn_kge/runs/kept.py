"""What a run keeps besides its training: the results of methods, and what was fitted.

Nothing here needs torch, so that reports can be made without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import CalibrationError, FileError, RunError, one_line
from lmpnn_kge.files import read_text, replace_file
from lmpnn_kge.files.checked import json_with_checksum, without_checksum
from lmpnn_kge.methods.calibration import Reliability
from lmpnn_kge.methods.names import LMPNN, OF_RUN
from lmpnn_kge.methods.results import Results
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.provenance import RunProvenance
from lmpnn_kge.work.listener import Listener

#: The results of the best network on the test queries.
TEST = "test.json"

#: The name of what is fitted for the probabilities of edges.
EDGES = "edges"

#: The two reliabilities of edges: of probabilities, and of sigmoids of the scores for comparison.
CALIBRATED, RAW = "calibrated", "raw"

Folder = RunFolder[TrainSettings, RunProvenance]


def results_file(method: str) -> str:
    """The file of a run with the results of a method on test."""
    return TEST if method == LMPNN else f"test-{method}.json"


def fit_file(name: str) -> str:
    """The file of a run with what was fitted under a name."""
    return f"{name}.json"


def read_results(folder: Folder, method: str) -> Results | None:
    """The results of a method on all test queries of a run; None if they were not kept."""
    file = results_file(method)
    if not folder.has(file):
        return None
    return Results.from_json(folder.read_json(file), str(folder.path / file))


def sound_results(folder: Folder, method: str, listener: Listener) -> Results | None:
    """`read_results` for callers that can measure them again: a note and None if it is damaged."""
    try:
        return read_results(folder, method)
    except RunError as error:
        listener.note(f"{one_line(error)}; it is measured again")
        return None


def method_results(folder: Folder) -> dict[str, Results]:
    """The results of all methods but the network that a run has, by name."""
    read = {method: read_results(folder, method) for method in OF_RUN if method != LMPNN}
    return {method: results for method, results in read.items() if results is not None}


def edge_reliability(folder: Folder) -> dict[str, Reliability]:
    """The reliability of edge probabilities on test, if they were fitted to the run's embedding."""
    file = fit_file(EDGES)
    if not folder.has(file):
        return {}
    content: Any = folder.read_json(file)
    source = folder.path / file
    try:
        if content["inputs"]["checkpoint"] != folder.provenance.checkpoint.sha256:
            return {}
        return read_reliability(content["fitted"]["reliability"], str(source))
    except (KeyError, TypeError, CalibrationError) as error:
        raise RunError(f"{source} is damaged: {one_line(error)}; remove it") from error


def read_reliability(content: object, source: str) -> dict[str, Reliability]:
    """The reliability of edges from a file; CalibrationError, which names it, if it has none."""
    if not isinstance(content, dict) or set(content) not in (set(), {CALIBRATED, RAW}):
        raise CalibrationError(f"{source}: the reliability of edges cannot be read")
    return {name: Reliability.from_json(content[name], source) for name in content}


def read_json(file: Path, head: Mapping[str, Any]) -> dict[str, Any] | None:
    """The content of a file that begins like this; None if there is no such file.

    FileError if it has changed since it was written.
    """
    try:
        content = json.loads(read_text(file))
    except (OSError, ValueError, RecursionError):
        return None
    try:
        content = without_checksum(content)
    except ValueError as error:
        raise FileError(f"{file} is damaged: {error}") from error
    return None if any(content.get(key) != head[key] for key in head) else content


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a file that `read_json` reads."""
    replace_file(json_with_checksum(content).encode(), file)
