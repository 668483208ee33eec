"""The plan of a table: one network for each row and seed, shared between rows if possible."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import ConfigError, RunError
from lmpnn_kge.files import distinct_names
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.runs.inputs import Inputs, gather
from lmpnn_kge.settings.kinds import TrainSettings, UnionMode
from lmpnn_kge.tables.file import BASE
from lmpnn_kge.work.listener import Listener

#: Letters in the name of a run folder; a longer name is cut, and a hash keeps it distinct.
LONGEST = 120


@dataclass(frozen=True, eq=False)
class Job:
    """A network to train."""

    label: str
    folder: Path
    inputs: Inputs
    settings: TrainSettings


@dataclass(frozen=True, eq=False)
class PlannedRow:
    """A row to train: its networks, one for each seed, and how they answer disjunctions."""

    label: str
    name: str  # in the file
    base: str  # the label of the row that it changes
    jobs: tuple[Job, ...]
    union: UnionMode
    repeated: bool  # whether an earlier row is the same

    @property
    def borrowed(self) -> bool:
        """Whether its networks were trained with another `union` than the row evaluates."""
        return any(job.settings.union != self.union for job in self.jobs)


def gather_all(
    checkpoints: Sequence[str | Path],
    backbone: str | None,
    dataset: str | Path | None,
    queries: str | Path | None,
    listener: Listener,
) -> list[Inputs]:
    """Open all checkpoints with the same queries; RunError if one does not know all of them."""
    gathered: list[Inputs] = []
    for checkpoint in {Path(given).resolve(): given for given in checkpoints}.values():
        inputs = gather(
            checkpoint, backbone=backbone, dataset=dataset, queries=queries, listener=listener
        )
        queries = inputs.queries.folder
        if gathered and _counts(inputs) != _counts(gathered[0]):
            raise RunError(
                f"{checkpoint} knows other queries of {queries} than "
                f"{gathered[0].checkpoint.file}; a table compares embeddings of one graph, on the "
                "same queries"
            )
        gathered.append(inputs)
    if not gathered:
        raise RunError("nothing to train on: give a checkpoint")
    gathered[0].training_queries()  # raises an error if there are none
    tests = gathered[0].store.splits.get("test", {}).values()
    if not any(len(group.hard.values) for group in tests):
        raise RunError(f"{queries} has no hard answers in 'test', nothing to rank")
    return gathered


def _counts(inputs: Inputs) -> dict[str, dict[str, int]]:
    """The number of queries by split and type."""
    splits = inputs.store.splits.items()
    return {split: {name: len(group) for name, group in types.items()} for split, types in splits}


def check_seeds(
    table: str | Path, seeds: int, configs: Mapping[str, TrainSettings], settings: Mapping[str, Any]
) -> None:
    """ConfigError if the number of seeds is invalid, or if rows or settings choose a seed, too."""
    if seeds < 1:
        raise ConfigError(f"the number of seeds is {seeds}, but must be 1 or more")
    naming = [name for name, config in configs.items() if config.seed != configs[BASE].seed]
    if "seed" in settings or naming:
        where = f"the row {naming[0]!r} of {table} has" if naming else "the settings have"
        raise ConfigError(f"{where} a seed, but --seeds gives every row its own; leave one out")


def plan_rows(
    folder: Path,
    configs: Mapping[str, TrainSettings],
    checkpoints: Sequence[Inputs],
    seeds: int | None,
) -> Iterator[PlannedRow]:
    """Every row of every checkpoint, with the networks that it needs.

    Rows with the same settings share a network. So do rows that differ only in `union` if no
    training query has a disjunction, because `union` then affects evaluation alone.
    """
    base, several = configs[BASE], len(checkpoints) > 1 or len(configs) == 1
    for inputs, key, backbone in named_checkpoints(checkpoints):
        train = inputs.store.splits["train"].values()
        disjunctions = any(len(wire(group.pattern)) > 1 for group in train if len(group))
        networks: dict[
            TrainSettings, TrainSettings
        ] = {}  # the first settings that train the same network
        labels: dict[
            tuple[TrainSettings, UnionMode], str
        ] = {}  # the first row with a network and a union
        for name, config in configs.items():
            label = ", ".join([backbone] * several + [name] * (len(configs) > 1))
            # Settings that are equal here train to the same weights; the first of them is used.
            alike = config if disjunctions else replace(config, union="dnf")
            network = networks.setdefault(alike, config)
            seeded = [network]
            if seeds is not None:
                seeded = [replace(network, seed=seed) for seed in range(seeds)]
            jobs = tuple(
                Job(
                    label if seeds is None else f"{label}, seed {trained.seed}",
                    folder / _folder_name(key, base, trained),
                    inputs,
                    trained,
                )
                for trained in seeded
            )
            same = labels.setdefault((network, config.union), label)
            shown = label if same == label else f"{label} (= {same})"
            first = labels[base, base.union]
            yield PlannedRow(shown, name, first, jobs, config.union, same != label)


def named_checkpoints(checkpoints: Sequence[Inputs]) -> Iterator[tuple[Inputs, str, str]]:
    """Each with a key for its folders and a label; more checkpoints do not change earlier keys."""
    backbones = [inputs.backbone_name for inputs in checkpoints]
    files = distinct_names([Path(inputs.checkpoint.file) for inputs in checkpoints])
    for number, (inputs, file) in enumerate(zip(checkpoints, files, strict=True)):
        backbone = inputs.backbone_name
        key = f"{backbone}-{file}" if backbone in backbones[:number] else backbone
        yield inputs, key, f"{backbone} ({file})" if backbones.count(backbone) > 1 else backbone


def _folder_name(key: str, base: TrainSettings, config: TrainSettings) -> str:
    """A name from the backbone and the settings that are not those of the base."""
    changed = [f"{k}={v}" for k, v in vars(config).items() if v != getattr(base, k)]
    name = re.sub(r"[^\w.,=-]+", "-", ",".join([key, *changed]))
    if len(name) <= LONGEST:
        return name
    return f"{name[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def jobs_of(rows: Sequence[PlannedRow]) -> list[Job]:
    """Every network once, with the label of its first row."""
    jobs: dict[Path, Job] = {}
    for row in rows:
        for job in row.jobs:
            jobs.setdefault(job.folder, job)
    return list(jobs.values())
