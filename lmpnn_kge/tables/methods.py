"""Rows of a table that need no network: other methods, evaluated on its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmpnn_kge.methods.names import FREQUENCY
from lmpnn_kge.methods.results import Results
from lmpnn_kge.runs.baselines import check_method, evaluate_on
from lmpnn_kge.runs.inputs import Inputs
from lmpnn_kge.runs.kept import read_json, write_json
from lmpnn_kge.tables.plan import named_checkpoints
from lmpnn_kge.tables.test_set import TestSet
from lmpnn_kge.work.listener import Listener

KIND, FORMAT = "lmpnn-kge method results", 1


@dataclass(frozen=True, eq=False)
class PlannedMethod:
    """A method to evaluate on a checkpoint, and the file that keeps its results on test."""

    label: str
    method: str
    file: Path
    inputs: Inputs

    def results(self, tested: TestSet, device: str, listener: Listener) -> Results:
        """The results on a test set, from the file if it has those of the same inputs."""
        file = self.file.with_name(f"{self.file.stem}{tested.suffix}.json")
        head = {
            "kind": KIND,
            "format": FORMAT,
            "method": self.method,
            "inputs": {
                "checkpoint": self.inputs.checkpoint.sha256,
                "queries": self.inputs.queries.sha256,
                "graph": self.inputs.graph_hash,
            },
        }
        kept = _kept(file, head)
        done = kept is not None and tested.has(kept)
        place = f" on {tested.name}" if tested.name else ""
        listener.note(f"method {self.label}{place}{' is already finished' if done else ''}")
        if kept is not None and done:
            return kept
        results = evaluate_on(
            self.method,
            self.inputs,
            store=tested.store(self.inputs),
            limit=tested.limit,
            device=device,
            listener=listener,
        )
        write_json(file, {**head, "results": results.to_json()})
        return results


def _kept(file: Path, head: Mapping[str, object]) -> Results | None:
    """The results in a file of the same inputs; None if there is none."""
    content = read_json(file, head)
    return None if content is None else Results.from_json(content.get("results"), str(file))


def plan_methods(
    folder: Path, methods: Sequence[str], checkpoints: Sequence[Inputs]
) -> list[PlannedMethod]:
    """Every method on every checkpoint; LmpnnError if one cannot be evaluated.

    frequency uses the graph only, and so has one row.
    """
    planned = []
    for method in dict.fromkeys(methods):
        check_method(method)
        for inputs, key, label in named_checkpoints(checkpoints):
            check_method(method, inputs)
            alone = method == FREQUENCY
            name = method if alone else f"{label}, {method}"
            file = folder / (f"{method}.json" if alone else f"{key}.{method}.json")
            planned.append(PlannedMethod(name, method, file, inputs))
            if alone:
                break
    return planned
