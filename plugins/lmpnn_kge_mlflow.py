"""Tracker for MLflow: to MLFLOW_TRACKING_URI, or else to the folder `mlflow` of a run.

The file `mlflow.id` of a run folder names its run there, so that a training that is resumed goes on
in the same one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmpnn_kge.plugin import PluginError, Tracker, hookimpl

#: MLflow refuses parameters with longer values.
LONGEST = 500


class Mlflow(Tracker):
    def __init__(self, folder: Path):
        from mlflow import MlflowClient

        super().__init__(folder)
        uri = os.environ.get("MLFLOW_TRACKING_URI") or (folder / "mlflow").resolve().as_uri()
        if uri.startswith("file:"):  # a folder of files, which MLflow no longer writes unasked
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self.client: Any = MlflowClient(tracking_uri=uri)
        file = folder / "mlflow.id"
        if not file.exists() or not file.read_text():  # a kill may have left it empty
            file.write_text(self._new_run())
        self.id = file.read_text()

    def _new_run(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "lmpnn-kge")
        experiment = self.client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self.client.create_experiment(name)
        return str(self.client.create_run(number, run_name=self.folder.name).info.run_id)

    def parameters(self, values: Mapping[str, str | int | float | bool | None]) -> None:
        known = self.client.get_run(self.id).data.params
        for name, value in values.items():
            if name not in known:  # a parameter cannot change
                self.client.log_param(self.id, name, str(value)[:LONGEST])

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self.client.log_metric(self.id, name, value, step=step)

    def artefact(self, file: Path) -> None:
        self.client.log_artifact(self.id, str(file))

    def close(self) -> None:
        self.client.set_terminated(self.id)


@hookimpl
def lmpnn_kge_tracker() -> type[Tracker]:
    try:
        import mlflow  # noqa: F401
    except ImportError as error:
        raise PluginError("the tracker mlflow needs `pip install 'lmpnn-kge[mlflow]'`") from error
    return Mlflow
