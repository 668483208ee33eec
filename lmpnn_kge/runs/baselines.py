"""Methods that need no training, evaluated on any checkpoint: CQD and the frequency of tails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmpnn_kge.device import choose_device
from lmpnn_kge.errors import ConfigError, DatasetError, choices
from lmpnn_kge.listener import SILENT, Listener
from lmpnn_kge.methods.cqd import Cqd, CqdBeam
from lmpnn_kge.methods.frequency import Frequency
from lmpnn_kge.methods.method import Method
from lmpnn_kge.methods.rank import evaluate_split
from lmpnn_kge.methods.results import Results
from lmpnn_kge.runs.inputs import Inputs, gather
from lmpnn_kge.settings.files import DEFAULT, load_settings
from lmpnn_kge.settings.kinds import CqdSettings

METHODS = ("cqd", "cqd-beam", "frequency")


def evaluate_method(
    name: str,
    checkpoint: str | Path,
    *,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    queries: str | Path | None = None,
    split: str = "test",
    limit: int | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    listener: Listener = SILENT,
) -> Results:
    """Evaluate a method on a checkpoint and its queries, which are found as `train` finds them.

    limit takes at most that many queries per type, evenly spread.
    """
    if name not in METHODS:
        raise ConfigError(f"there is no method {name!r}; {choices(name, METHODS)}")
    inputs = gather(
        checkpoint, backbone=backbone, dataset=dataset, queries=queries, listener=listener
    )
    inputs.store.queries(split)  # an error before the work
    method = _method(name, inputs, settings or {}, device)
    for note in inputs.notes:
        listener.note(note)
    return evaluate_split(method, inputs.store, split, limit, listener)


def _method(name: str, inputs: Inputs, settings: Mapping[str, Any], device: str) -> Method:
    chosen = choose_device(device)
    if name == "frequency":
        if settings:
            raise ConfigError("the method frequency has no settings")
        if inputs.graph is None:
            raise DatasetError("the method frequency counts training edges: give --dataset DIR")
        return Frequency.of(inputs.graph, inputs.backbone)
    cqd_settings = load_settings(CqdSettings, [DEFAULT], settings)
    return (Cqd if name == "cqd" else CqdBeam).of(inputs.backbone.to(chosen), cqd_settings)
