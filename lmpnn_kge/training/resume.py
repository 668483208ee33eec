"""Beginning and resuming a training: one rule for networks, tables and embeddings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lmpnn_kge.errors import ConfigError, RunError
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.processes import current
from lmpnn_kge.training.folder import STATE, FolderKind, P, RunFolder, S, is_run


@contextmanager
def begin_or_resume(
    path: str | Path,
    kind: FolderKind[S, P],
    settings: S,
    provenance: P,
    vocabulary: Vocabulary | None = None,
    *,
    resume: bool,
) -> Iterator[RunFolder[S, P]]:
    """Yield a new run, or one that continues with the same inputs and settings, and lock it.

    Only the number of epochs may change in a run that continues. The first process of a job does
    all this, and describes the run to the others.
    """
    processes = current()
    processes.any()  # nobody looks any longer whether the run exists
    if not processes.first:
        yield RunFolder.described(path, kind, processes.broadcast())
        return
    with _begin_or_resume(path, kind, settings, provenance, vocabulary, resume=resume) as folder:
        processes.broadcast(folder.describe())
        yield folder


@contextmanager
def _begin_or_resume(
    path: str | Path,
    kind: FolderKind[S, P],
    settings: S,
    provenance: P,
    vocabulary: Vocabulary | None,
    *,
    resume: bool,
) -> Iterator[RunFolder[S, P]]:
    if not (resume and is_run(path, kind)):
        folder = RunFolder.create(path, kind, settings, provenance, vocabulary)
        with folder.lock():
            yield folder
        return
    folder = RunFolder.open(path, kind)
    with folder.lock():
        folder.check_inputs(provenance, vocabulary)
        folder.check_settings(dataclasses.replace(settings, epochs=folder.settings.epochs))
        yield _with_epochs(folder, settings)


def changed_settings(before: S, wanted: S, given: Iterable[str]) -> S:
    """The settings a run began with, and the given ones as they are wanted now."""
    return dataclasses.replace(before, **{key: getattr(wanted, key) for key in given})


def _with_epochs(folder: RunFolder[S, P], settings: S) -> RunFolder[S, P]:
    """The same run with another number of epochs; ConfigError if it has done more already."""
    if settings.epochs == folder.settings.epochs:
        return folder
    done = epochs_done(folder)
    if settings.epochs < min(done, folder.settings.epochs):
        raise ConfigError(
            f"{folder.path} has finished {done} epochs and cannot go back to {settings.epochs}; "
            f"ask for {done} or more, or choose another --out"
        )
    for results in folder.path.glob("test*.json"):  # first: they must not outlive their network
        folder.remove(results.name)
    folder.write_settings(settings)
    return dataclasses.replace(folder, settings=settings)


def epochs_done(folder: RunFolder[S, P]) -> int:
    """How many epochs of a run are finished."""
    if not folder.has(STATE):
        return 0
    facts = folder.read_facts(STATE)
    epoch = facts.get("epoch") if isinstance(facts, dict) else None
    if type(epoch) is not int:
        raise RunError(f"{folder.path / STATE} is damaged: it does not say how many epochs it has")
    return epoch


def is_finished(folder: RunFolder[S, P]) -> bool:
    """Whether a training has done all its epochs, or has stopped because nothing improved."""
    if epochs_done(folder) >= folder.settings.epochs:
        return True
    stale = folder.read_facts(STATE).get("stale") if folder.has(STATE) else 0
    return type(stale) is int and 0 < folder.settings.patience <= stale
