"""Which networks a table needs: one for each row and seed, as few as will do."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import ConfigError, RunError
from lmpnn_kge.lmpnn.wiring import Union, wire
from lmpnn_kge.reports.report import tell_apart
from lmpnn_kge.runs.inputs import Material, Sample, gather
from lmpnn_kge.runs.run import training_queries
from lmpnn_kge.settings import Config
from lmpnn_kge.tables.file import BASE

#: Letters in the name of a run folder; what is longer is cut, and told apart by its hash.
LONGEST = 120


@dataclass(frozen=True, eq=False)
class Job:
    """A network to train."""

    label: str
    folder: Path
    material: Material
    config: Config


@dataclass(frozen=True, eq=False)
class Row:
    """A row to be: its networks, one for each seed, and how they read disjunctions."""

    label: str
    name: str  # in the file
    base: str  # the label of the row that it changes
    jobs: tuple[Job, ...]
    union: Union
    known: bool  # whether an earlier row is the same

    @property
    def asked_otherwise(self) -> bool:
        """Whether its networks were trained with another reading."""
        return any(job.config.union != self.union for job in self.jobs)


def gather_all(
    checkpoints: Sequence[str | Path],
    backbone: str | None,
    dataset: str | Path | None,
    queries: str | Path | None,
    sample: Sample,
) -> list[Material]:
    """All checkpoints with the same queries; RunError where one does not know them all."""
    found: list[Material] = []
    for checkpoint in {Path(given).resolve(): given for given in checkpoints}.values():
        material = gather(
            checkpoint, backbone=backbone, dataset=dataset, queries=queries, sample=sample
        )
        queries = material.queries
        if found and _counts(material) != _counts(found[0]):
            raise RunError(
                f"{checkpoint} knows other queries of {queries} than {found[0].checkpoint}; a "
                "table compares embeddings of one graph, on the same queries"
            )
        found.append(material)
    if not found:
        raise RunError("nothing to train on: give a checkpoint")
    training_queries(found[0])
    tests = found[0].store.splits.get("test", {}).values()
    if not any(len(asked.hard.values) for asked in tests):
        raise RunError(f"{queries} has no hard answers in 'test', nothing to rank")
    return found


def _counts(material: Material) -> dict[str, dict[str, int]]:
    splits = material.store.splits.items()
    return {split: {name: len(asked) for name, asked in found.items()} for split, found in splits}


def check_seeds(
    table: str | Path, seeds: int, configs: Mapping[str, Config], settings: Mapping[str, Any]
) -> None:
    """ConfigError where seeds are said twice."""
    if seeds < 1:
        raise ConfigError(f"{seeds} seeds are none; ask for 1 or more")
    naming = [name for name, config in configs.items() if config.seed != configs[BASE].seed]
    if "seed" in settings or naming:
        where = f"the row {naming[0]!r} of {table} has" if naming else "the settings have"
        raise ConfigError(f"{where} a seed, but --seeds gives every row its own; leave one out")


def plan_rows(
    folder: Path, configs: Mapping[str, Config], materials: Sequence[Material], seeds: int | None
) -> Iterator[Row]:
    """Every row of every checkpoint, with the networks that it needs.

    Rows share those with the same settings; and those that differ in `union` alone, where no
    training query has a disjunction: then it only decides how a network is asked.
    """
    base, several = configs[BASE], len(materials) > 1 or len(configs) == 1
    for material, key, backbone in _named(materials):
        train = material.store.splits["train"].values()
        learnt = any(len(wire(found.pattern)) > 1 for found in train if len(found))
        trained: dict[Config, Config] = {}  # by all that training depends on
        labels: dict[Any, str] = {}  # by all that decides a row
        for name, config in configs.items():
            label = ", ".join([backbone] * several + [name] * (len(configs) > 1))
            like = config if learnt else replace(config, union="dnf")
            network = trained.setdefault(like, config)
            each = [network] if seeds is None else [replace(network, seed=s) for s in range(seeds)]
            jobs = tuple(
                Job(
                    label if seeds is None else f"{label}, seed {one.seed}",
                    folder / _folder_name(key, base, one),
                    material,
                    one,
                )
                for one in each
            )
            same = labels.setdefault((network, config.union), label)
            shown = label if same == label else f"{label} (= {same})"
            first = labels[base, base.union]
            yield Row(shown, name, first, jobs, config.union, same != label)


def _named(materials: Sequence[Material]) -> Iterator[tuple[Material, str, str]]:
    """Each with a key for its folders, which others that are added do not change, and a label."""
    readers = [material.reader for material in materials]
    files = tell_apart([material.checkpoint for material in materials])
    for number, (material, file) in enumerate(zip(materials, files, strict=True)):
        reader = material.reader
        key = f"{reader}-{file}" if reader in readers[:number] else reader
        yield material, key, f"{reader} ({file})" if readers.count(reader) > 1 else reader


def _folder_name(key: str, base: Config, config: Config) -> str:
    """What sets a run apart: its backbone, and the settings that are not those of the base."""
    changed = [f"{k}={v}" for k, v in vars(config).items() if v != getattr(base, k)]
    name = re.sub(r"[^\w.,=-]+", "-", ",".join([key, *changed]))
    if len(name) <= LONGEST:
        return name
    return f"{name[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def jobs_of(rows: Sequence[Row]) -> list[Job]:
    """Every network once, by the name of its first row."""
    found: dict[Path, Job] = {}
    for row in rows:
        for job in row.jobs:
            found.setdefault(job.folder, job)
    return list(found.values())
