"""Search with the known edges and without them, beside each other and beside a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from lmpnn_kge.errors import ConfigError
from lmpnn_kge.methods.names import HYBRID, LMPNN, SEARCH
from lmpnn_kge.methods.results import Results
from lmpnn_kge.runs.baselines import check_method, evaluate_on
from lmpnn_kge.runs.inputs import gather
from lmpnn_kge.runs.moved import find_checkpoint, find_moved
from lmpnn_kge.runs.run import Run
from lmpnn_kge.settings.kinds import FactsMode
from lmpnn_kge.work.listener import SILENT, Listener


def evaluate_facts(
    checkpoint: str | Path | None = None,
    methods: Sequence[str] = (SEARCH, HYBRID),
    *,
    run: Run | None = None,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    queries: str | Path | None = None,
    split: str = "test",
    limit: int | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    table_memory: str | None = None,
    listener: Listener = SILENT,
) -> dict[str, Results]:
    """Results of methods that see the known edges and that ignore them, by label.

    With a run, its network comes first, and its checkpoint, graph and queries are the default.
    """
    results = {}
    if run is not None:
        checkpoint, _ = find_checkpoint(run.folder, checkpoint)
        dataset = dataset or (None if run.graph is None else run.graph.folder)
        queries = queries or find_moved(run.folder.provenance.queries.folder, run.folder.path)
        results[LMPNN] = run.evaluate(split, queries=queries, limit=limit, listener=listener)
    if checkpoint is None:
        raise ConfigError("give a run or a checkpoint")
    inputs = gather(
        checkpoint, backbone=backbone, dataset=dataset, queries=queries, listener=listener
    )
    for note in inputs.notes:
        listener.note(note)
    for method in methods:
        check_method(method, inputs)
    for method in methods:
        for facts in get_args(FactsMode):
            results[f"{method}, facts {facts}"] = evaluate_on(
                method,
                inputs,
                split=split,
                limit=limit,
                settings={**(settings or {}), "facts": facts},
                device=device,
                table_memory=table_memory,
                listener=listener,
            )
    return results
