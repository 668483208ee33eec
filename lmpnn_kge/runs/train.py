"""Training LMPNN on a checkpoint, in a run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from lmpnn_kge.backbones.placing import fits, table_limit
from lmpnn_kge.device import choose_device, choose_precision, describe_device
from lmpnn_kge.errors import RunError
from lmpnn_kge.files import relative
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.lmpnn.batches import Input, check_batches
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.names import LMPNN
from lmpnn_kge.processes import current
from lmpnn_kge.runs.inputs import Inputs, gather, queries_beside
from lmpnn_kge.runs.kept import TEST, sound_results
from lmpnn_kge.runs.moved import find_moved, precision
from lmpnn_kge.runs.run import Run
from lmpnn_kge.runs.tracking import check_trackers, tracked
from lmpnn_kge.settings.files import DEFAULT, load_config
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.training.folder import RUN, RunFolder, check_new, is_run
from lmpnn_kge.training.lmpnn import LmpnnTask, load_best
from lmpnn_kge.training.loop import Loop
from lmpnn_kge.training.provenance import RunProvenance
from lmpnn_kge.training.resume import begin_or_resume, changed_settings
from lmpnn_kge.work.listener import SILENT, Listener


def train(
    checkpoint: str | Path | None = None,
    *,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    queries: str | Path | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    table_memory: str | None = None,
    resume: bool = False,
    track: Sequence[str] = (),
    listener: Listener = SILENT,
) -> Run:
    """Train LMPNN on a checkpoint, in a run folder, and test the best network once.

    resume continues the run in that folder, if there is one, to the same result as if it had not
    been stopped: bit for bit on a CPU. track has the names of trackers that record the training.
    table_memory, such as 8GB, is how much of the entity table the device may hold; by default the
    table may take half of the device's memory. A table that is larger is read in parts.
    """
    # Whatever can be wrong is found before the queries are sampled, which may take long.
    wanted = load_config(DEFAULT if config is None else config, settings)
    table_limit(table_memory, choose_device(device))
    check_trackers(track)
    before = None
    if resume and out is not None and (checkpoint is None or is_run(out, RUN)):
        before = RunFolder.open(out, RUN)
        source = before.provenance
        checkpoint = checkpoint or find_moved(source.checkpoint.file, before.path)
        backbone = backbone or source.backbone
        dataset = dataset or (source.dataset and find_moved(source.dataset, before.path))
        queries = queries or _recorded_queries(before, dataset)
    elif out is not None:
        check_new(out)
    if checkpoint is None:
        raise RunError("nothing to train on: give a checkpoint, or a run to resume")
    with current().in_turn():  # so that queries are sampled once
        inputs = gather(
            checkpoint, backbone=backbone, dataset=dataset, queries=queries, listener=listener
        )
    out = Path(out or Path("runs") / inputs.name)
    if before is None and resume and is_run(out, RUN):
        before = RunFolder.open(out, RUN)
    if before is not None and config is None:  # settings that are not given stay as they were
        wanted = changed_settings(before.settings, wanted, settings or {})
    names = track if current().first else ()  # of the processes of a job, the first one records
    with tracked(names, listener) as tracking:
        heard = tracking if names else listener
        run = train_on(
            inputs,
            wanted,
            out,
            device=device,
            table_memory=table_memory,
            resume=resume,
            listener=heard,
        )
        tracking.finish(run.folder.path, run.results)
    return run


def _recorded_queries(
    run: RunFolder[TrainSettings, RunProvenance], dataset: str | Path | None
) -> Path | None:
    """The queries of a run; None if they are gone, but can be sampled beside its graph again."""
    folder = find_moved(run.provenance.queries.folder, run.path)
    if dataset is None or folder.exists():
        return folder
    return None if folder.name == queries_beside(KnowledgeGraph.of(dataset)).name else folder


def train_on(
    inputs: Inputs,
    settings: TrainSettings,
    out: str | Path,
    *,
    device: str = "auto",
    table_memory: str | None = None,
    resume: bool = False,
    test: bool = True,
    listener: Listener = SILENT,
) -> Run:
    """`train` with complete settings, on inputs that are gathered already.

    Without test, the test queries are not looked at.
    """
    chosen = choose_device(device)
    train_queries = inputs.training_queries()
    splits = inputs.store.splits
    limit, backbone = table_limit(table_memory, chosen), inputs.backbone
    if not fits(backbone.entities, limit):
        batches = Input(train_queries, backbone.num_entities, settings)
        check_batches(batches, backbone.dim, limit)
    provenance = provenance_of(inputs, settings, chosen)
    with begin_or_resume(
        out, RUN, settings, provenance, inputs.vocabulary, resume=resume
    ) as folder:
        listener.start(folder.path, _facts(inputs, folder.provenance, chosen))
        for note in inputs.notes:
            listener.note(note)
        dtype = precision(folder.provenance)
        model = Lmpnn(inputs.backbone, folder.settings, dtype=dtype).on(chosen, table_memory)
        if model.backbone.table_note:
            listener.note(model.backbone.table_note)
        task = LmpnnTask(model, folder.settings, train_queries, splits.get("valid", {}), dtype)
        Loop(task, folder).train(listener)
        run = _loaded(model, folder, inputs)
        tests = splits.get("test", {}).values()
        writes = current().first
        untested = current().any(writes and sound_results(folder, LMPNN, listener) is None)
        if test and untested and any(len(queries.hard.values) for queries in tests):
            results = run.evaluate("test", queries=inputs.store, listener=listener)
            folder.write_json(TEST, results.to_json())
    return run


def open_trained(
    folder: RunFolder[TrainSettings, RunProvenance], inputs: Inputs, device: str = "auto"
) -> Run:
    """Open a trained run on inputs that are gathered already."""
    dtype = precision(folder.provenance)
    model = Lmpnn(inputs.backbone, folder.settings, dtype=dtype).on(choose_device(device))
    return _loaded(model, folder, inputs)


def _loaded(model: Lmpnn, folder: RunFolder[TrainSettings, RunProvenance], inputs: Inputs) -> Run:
    load_best(model, folder)
    method = LmpnnMethod.of(model, folder.settings)
    return Run(folder, method, inputs.vocabulary, inputs.graph, inputs.notes)


def provenance_of(inputs: Inputs, settings: TrainSettings, device: torch.device) -> RunProvenance:
    """What a run that begins now remembers of its inputs."""
    dtype = choose_precision(settings.precision, device)
    return RunProvenance.now(
        backbone=inputs.backbone_name,
        dataset=None if inputs.graph is None else str(inputs.graph.folder.resolve()),
        device=describe_device(device),
        precision="bf16" if dtype == torch.bfloat16 else "fp32",
        checkpoint=inputs.checkpoint,
        queries=inputs.queries,
        graph=inputs.graph_hash,
    )


def _facts(inputs: Inputs, provenance: RunProvenance, device: torch.device) -> dict[str, str]:
    """What is trained on what, for people."""
    counts = (
        f"{sum(map(len, patterns.values())):,} {split}"
        for split, patterns in inputs.store.splits.items()
    )
    width, file = inputs.backbone.dim, relative(inputs.checkpoint.file)
    return {
        "backbone": f"{inputs.backbone_name} of width {width} ({file})",
        "queries": f"{', '.join(counts)} ({relative(inputs.queries.folder)})",
        "device": f"{describe_device(device)}, {provenance.precision}",
    }
