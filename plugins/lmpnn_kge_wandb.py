"""Tracker for Weights & Biases, which is set up by its own variables, such as WANDB_MODE=offline.

The file `wandb.id` of a run folder names its run there, so that a training that is resumed goes on
in the same one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from lmpnn_kge.plugin import PluginError, Tracker, hookimpl


class WeightsAndBiases(Tracker):
    def __init__(self, folder: Path):
        import wandb

        super().__init__(folder)
        file = folder / "wandb.id"
        if not file.exists() or not file.read_text():  # a kill may have left it empty
            file.write_text(uuid4().hex)
        self.run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "lmpnn-kge"),
            name=folder.name,
            id=file.read_text(),
            resume="allow",
            dir=str(folder),
            reinit="create_new",
            settings=wandb.Settings(console="off"),
        )

    def parameters(self, values: Mapping[str, str | int | float | bool | None]) -> None:
        self.run.config.update(dict(values), allow_val_change=True)

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        self.run.log(dict(values), step=step)

    def artefact(self, file: Path) -> None:
        self.run.save(str(file), base_path=str(self.folder), policy="now")

    def close(self) -> None:
        self.run.finish()


@hookimpl
def lmpnn_kge_tracker() -> type[Tracker]:
    try:
        import wandb  # noqa: F401
    except ImportError as error:
        raise PluginError("the tracker wandb needs `pip install 'lmpnn-kge[wandb]'`") from error
    return WeightsAndBiases
