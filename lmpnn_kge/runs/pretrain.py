"""Pretraining: an embedding of a graph, trained with any backbone and written as a checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from lmpnn_kge.backbones.checkpoint import Validation
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.discovery import backbone_class as load_class
from lmpnn_kge.backbones.libkge.write import write_checkpoint
from lmpnn_kge.backbones.link_prediction import Ranking, rank_triples
from lmpnn_kge.backbones.messages import ScoreType
from lmpnn_kge.backbones.open import open_backbone
from lmpnn_kge.backbones.placing import SINGLE
from lmpnn_kge.backbones.safetensors import save_backbone
from lmpnn_kge.device import choose_device, describe_device
from lmpnn_kge.errors import LmpnnError, RunError
from lmpnn_kge.files import check_file, remove_folder
from lmpnn_kge.files.leftovers import remove_leftovers
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.memory import SHARE, machine_memory, size_text
from lmpnn_kge.graph.triples import SPLITS, distinct
from lmpnn_kge.processes import current
from lmpnn_kge.settings.files import files_for_score, load_settings
from lmpnn_kge.settings.kinds import PretrainSettings
from lmpnn_kge.training.embedding import EmbeddingTask
from lmpnn_kge.training.folder import PRETRAINING, RunFolder, is_run
from lmpnn_kge.training.loop import Loop
from lmpnn_kge.training.penalty import MOST_TRIPLES, USUAL, choose_penalty
from lmpnn_kge.training.provenance import PretrainProvenance
from lmpnn_kge.training.questions import Batch
from lmpnn_kge.training.resume import begin_or_resume, changed_settings
from lmpnn_kge.work.listener import SILENT, Listener

#: LibKGE's name for the mean reciprocal rank with the triples of all splits filtered out.
METRIC = "mean_reciprocal_rank_filtered_with_test"

Folder = RunFolder[PretrainSettings, PretrainProvenance]
Trained = tuple[EmbeddingTask, Loop[Batch]]

#: What training holds in memory for each number of the entity table: the number, its first value,
#: the sum of its squared gradients, and copies of these while a state or the result is written.
COPIES = 8

#: With this many entities or more, a note says that sampled negatives are faster.
MANY = 100_000


def pretrain(
    backbone: str,
    dataset: str | Path | KnowledgeGraph,
    file: str | Path,
    *,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    resume: bool = False,
    listener: Listener = SILENT,
) -> Ranking | None:
    """Train a backbone on a graph and write it to a file: as .safetensors, or a LibKGE package.

    Returns its link prediction on test, or None if the graph has no test triples. The state is kept
    in FILE.training until the file is written; resume continues from there.
    """
    check_file(file)
    file = Path(file)
    state = Path(f"{file}.training")
    remove_leftovers(state)
    if file.exists() and not is_run(state):
        graph = KnowledgeGraph.of(dataset)
        if resume and (finished := _finished(file, backbone, graph)):
            return _ranking(finished, graph)
        raise RunError(f"{file} exists already; remove it, or write to another file")
    if is_run(state) and not resume:
        raise RunError(
            f"an unfinished training of {file} is in {state}; continue it with --resume, or remove "
            f"{state}"
        )
    backbone_class = load_class(backbone)
    graph = KnowledgeGraph.of(dataset)
    if not len(graph.triples("train")):
        raise RunError(f"{graph.folder} has no training triples to learn from")
    wanted = pretrain_settings(backbone_class, config, settings or {})
    if is_run(state, PRETRAINING) and config is None:  # settings not given stay as they were
        before = RunFolder.open(state, PRETRAINING).settings
        wanted = changed_settings(before, wanted, settings or {})
    if wanted.penalty is None and not _can_choose(graph):
        wanted = dataclasses.replace(wanted, penalty=USUAL)
    _check_writable(file, backbone, backbone_class, wanted, graph)
    chosen = choose_device(device)
    provenance = PretrainProvenance.now(
        backbone=backbone, dataset=str(graph.folder.resolve()), graph=graph.fingerprint
    )
    with begin_or_resume(state, PRETRAINING, wanted, provenance, resume=resume) as folder:
        width = backbone_class.entity_width(folder.settings.dim)
        names = f"{graph.num_entities:,} entities, {graph.num_relations:,} relations"
        facts = {
            "backbone": f"{backbone} of width {width}",
            "graph": f"{names} ({graph.folder})",
            "device": describe_device(chosen),
        }
        listener.start(folder.path, facts)
        for note in _notes(graph, backbone_class, folder.settings):
            listener.note(note)
        train = partial(_train, backbone_class, graph, chosen, listener)
        if folder.settings.penalty is None:
            task, loop = _choose(folder, train, listener)
        else:
            task, loop = train(folder)
        best, epoch = task.best(loop.folder)
        if current().first:
            _write(best, file, backbone, graph.name, epoch, loop.state.history)
        ranking = task.rank(best, "test") if len(task.triples["test"]) else None
        if current().first:
            remove_folder(folder.path)
    return ranking


def _finished(file: Path, backbone: str, graph: KnowledgeGraph) -> Backbone | None:
    """The embedding in a file, if it is a finished training of this backbone on this graph.

    A process may have been killed after it had written the file and before it could say so.
    """
    try:
        opened = open_backbone(file, backbone)
    except LmpnnError:
        return None
    fits = opened.has_names and opened.vocabulary.has_ids_of(graph.vocabulary)
    return opened if fits else None


def _ranking(backbone: Backbone, graph: KnowledgeGraph) -> Ranking | None:
    """Filtered link prediction on test; None if the graph has no test triples."""
    test = graph.triples("test")
    known = np.concatenate([graph.triples(split) for split in SPLITS])
    return rank_triples(backbone, test, known) if len(test) else None


def _train(
    backbone_class: type[Backbone],
    graph: KnowledgeGraph,
    device: torch.device,
    listener: Listener,
    folder: Folder,
) -> Trained:
    """Train an embedding with the settings of a folder."""
    task = EmbeddingTask(backbone_class, graph, folder.settings, device)
    loop = Loop(task, folder)
    loop.train(listener)
    return task, loop


def _choose(folder: Folder, train: Callable[[Folder], Trained], listener: Listener) -> Trained:
    """Train with several penalties, each in a folder of its own, and keep the best on valid."""
    trained: dict[float, Trained] = {}

    def quality(penalty: float) -> float:
        listener.note(f"trying penalty={penalty} (--set penalty={penalty} skips the search)")
        settings = dataclasses.replace(folder.settings, penalty=penalty)
        trial = folder.path / f"penalty-{penalty}"
        with begin_or_resume(
            trial, PRETRAINING, settings, folder.provenance, resume=True
        ) as trial_folder:
            trained[penalty] = train(trial_folder)
        return _valid_mrr(trained[penalty])

    best = choose_penalty(quality)
    figures = ", ".join(
        f"{100 * _valid_mrr(trial):.1f} for {penalty}" for penalty, trial in sorted(trained.items())
    )
    listener.note(f"chose penalty={best} by the MRR on valid: {figures}")
    return trained[best]


def _valid_mrr(trained: Trained) -> float:
    _, loop = trained
    return loop.state.best or 0.0


def _can_choose(graph: KnowledgeGraph) -> bool:
    """Whether a graph has validation triples, and is so small that training again takes little."""
    return len(graph.triples("valid")) > 0 and len(graph.triples("train")) <= MOST_TRIPLES


def pretrain_settings(
    backbone_class: type[Backbone], config: str | Path | None, settings: Mapping[str, Any]
) -> PretrainSettings:
    """The defaults for the backbone's type of score, with the changes of a file and of settings."""
    is_distance = backbone_class.score_type is ScoreType.DISTANCE
    return load_settings(PretrainSettings, files_for_score(is_distance, config), settings)


def _check_writable(
    file: Path,
    name: str,
    backbone_class: type[Backbone],
    settings: PretrainSettings,
    graph: KnowledgeGraph,
) -> None:
    """Write the smallest such backbone aside: what cannot be written is found before training."""
    width = backbone_class.entity_width(settings.dim)
    with TemporaryDirectory() as aside:
        smallest = backbone_class.random(2, 1, width, reciprocal=True)
        _write(smallest, Path(aside) / file.name, name, graph.name, 0, [])


def _notes(
    graph: KnowledgeGraph, backbone_class: type[Backbone], settings: PretrainSettings
) -> Iterator[str]:
    """What to know about a graph before the long wait."""
    yield from graph.notes
    inner = backbone_class.score_type is ScoreType.INNER_PRODUCT
    if inner and not settings.negatives and graph.num_entities >= MANY:
        yield "every entity is scored for every question; --set negatives=1024 is faster"
    numbers = graph.num_entities * backbone_class.entity_width(settings.dim)
    if (needed := COPIES * SINGLE * numbers) > SHARE * machine_memory():
        yield (
            f"training holds about {size_text(needed)} of memory for the entity table and what is "
            f"learnt about it, besides the graph; this machine has {size_text(machine_memory())}, "
            "and a smaller dim takes less"
        )
    if unseen := graph.num_entities - len(distinct(graph.triples("train")[:, ::2])):
        yield f"{unseen:,} of the graph's entities are in no training triple"


def _write(
    backbone: Backbone,
    file: Path,
    name: str,
    dataset: str,
    epoch: int,
    history: Sequence[Mapping[str, Any]],
) -> None:
    """Write a .safetensors file, which holds any backbone, or a package of LibKGE's."""
    if file.suffix == ".safetensors":
        save_backbone(backbone, file, name=name, dataset=dataset)
        return
    validations = [
        Validation(METRIC, record["valid"]["mrr"], record["epoch"])
        for record in history
        if "valid" in record and record["epoch"] <= epoch
    ]
    write_checkpoint(backbone, file, dataset=dataset, epoch=epoch, validations=validations)
