"""Methods that need no network, evaluated on any checkpoint: search, hybrid, CQD, frequency."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.device import choose_device
from lmpnn_kge.errors import ConfigError, DatasetError, choices
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.methods.cqd import Cqd, CqdBeam
from lmpnn_kge.methods.frequency import Frequency
from lmpnn_kge.methods.names import CQD, FREQUENCY, HYBRID, OF_CHECKPOINT, SEARCH
from lmpnn_kge.methods.results import Results
from lmpnn_kge.processes import current
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.runs.fitting import FittedMethod, Fitting, evaluate_fitted
from lmpnn_kge.runs.inputs import Inputs, gather
from lmpnn_kge.runs.knowledge import Knowledge
from lmpnn_kge.settings.files import DEFAULT, load_settings
from lmpnn_kge.settings.kinds import CqdSettings, SearchSettings
from lmpnn_kge.work.listener import SILENT, Listener


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
    ranks: str | Path | None = None,
    device: str = "auto",
    table_memory: str | None = None,
    listener: Listener = SILENT,
) -> Results:
    """Evaluate a method on a checkpoint and its queries, which are found as `train` finds them.

    limit takes at most that many queries per type, evenly spread. The rank of every hard answer is
    written to the file `ranks`, which ends in .parquet or .csv, if one is given. table_memory is
    how much of the entity table the device may hold, as in `train`.
    """
    check_method(name)
    with current().in_turn():  # so that queries are sampled once
        inputs = gather(
            checkpoint, backbone=backbone, dataset=dataset, queries=queries, listener=listener
        )
    for note in inputs.notes:
        listener.note(note)
    return evaluate_on(
        name,
        inputs,
        split=split,
        limit=limit,
        settings=settings,
        ranks=ranks,
        device=device,
        table_memory=table_memory,
        listener=listener,
    )


def evaluate_on(
    name: str,
    inputs: Inputs,
    *,
    store: QueryStore | None = None,
    split: str = "test",
    limit: int | None = None,
    settings: Mapping[str, Any] | None = None,
    ranks: str | Path | None = None,
    device: str = "auto",
    table_memory: str | None = None,
    listener: Listener = SILENT,
) -> Results:
    """`evaluate_method` on inputs that are gathered already.

    store has other queries to evaluate on, in the rows of the backbone; what is fitted is fitted on
    the inputs' own.
    """
    check_method(name, inputs)
    store = inputs.store if store is None else store
    store.queries(split)  # an error before the work
    backbone = inputs.backbone.placed(choose_device(device), table_memory)
    if backbone.table_note:
        listener.note(backbone.table_note)
    fitted = _method(name, inputs, backbone, settings or {}, listener)
    hashes = {"checkpoint": inputs.checkpoint.sha256, "graph": inputs.graph_hash}
    return evaluate_fitted(fitted, store, split, limit, hashes, ranks, listener)


def check_method(name: str, inputs: Inputs | None = None) -> None:
    """LmpnnError if there is no such method, or if it needs a graph that the inputs lack."""
    if name not in OF_CHECKPOINT:
        raise ConfigError(f"there is no method {name!r}; {choices(name, OF_CHECKPOINT)}")
    if inputs is not None and name in (SEARCH, HYBRID, FREQUENCY):
        _graph(name, inputs)


def _method(
    name: str,
    inputs: Inputs,
    backbone: Backbone,
    settings: Mapping[str, Any],
    listener: Listener,
) -> FittedMethod:
    if name in (SEARCH, HYBRID):
        chosen = load_settings(SearchSettings, [DEFAULT], settings)
        return _fitting(name, inputs, backbone).method(name, chosen, listener)
    if name == FREQUENCY:
        if settings:
            raise ConfigError("the method frequency has no settings")
        return FittedMethod(Frequency.of(_graph(name, inputs), inputs.backbone), name=name)
    cqd_settings = load_settings(CqdSettings, [DEFAULT], settings)
    method = (Cqd if name == CQD else CqdBeam).of(backbone, cqd_settings)
    return FittedMethod(method, name=name, settings=vars(cqd_settings))


def _fitting(name: str, inputs: Inputs, backbone: Backbone) -> Fitting:
    """What is fitted to a checkpoint is kept beside it."""
    file = Path(inputs.checkpoint.file)
    graph = _graph(name, inputs)
    knowledge = Knowledge(graph, inputs.vocabulary, backbone.device)
    return Fitting(
        backbone,
        knowledge.facts,
        lambda fitted: file.with_suffix(f".{fitted}.json"),
        {
            "checkpoint": inputs.checkpoint.sha256,
            "queries": inputs.queries.sha256,
            "graph": graph.fingerprint,
        },
        lambda: inputs.store.splits.get("valid", {}),
        knowledge.triples,
        knowledge.known_answers,
    )


def _graph(name: str, inputs: Inputs) -> KnowledgeGraph:
    if inputs.graph is None:
        raise DatasetError(f"{name} needs the training edges: give their graph with --dataset DIR")
    return inputs.graph
