"""Tracker for TensorBoard: curves in the folder `tensorboard` of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmpnn_kge.plugin import PluginError, Tracker, hookimpl


class TensorBoard(Tracker):
    def __init__(self, folder: Path):
        from torch.utils.tensorboard import SummaryWriter

        super().__init__(folder)
        self.writer: Any = SummaryWriter(str(folder / "tensorboard"))

    def parameters(self, values: Mapping[str, str | int | float | bool | None]) -> None:
        rows = "\n".join(f"    {name}: {value}" for name, value in values.items())
        self.writer.add_text("parameters", rows)  # indented text is shown as it is

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


@hookimpl
def lmpnn_kge_tracker() -> type[Tracker]:
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError as error:
        raise PluginError(
            "the tracker tensorboard needs `pip install 'lmpnn-kge[tensorboard]'`"
        ) from error
    return TensorBoard
