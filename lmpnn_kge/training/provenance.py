"""Provenance: what a run was made from, by what, and with which command."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import platform
import shlex
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmpnn_kge.errors import short
from lmpnn_kge.files import open_file

if TYPE_CHECKING:
    from typing_extensions import Self

    from lmpnn_kge.queries.store import QueryStore


def file_hash(file: str | Path) -> str:
    """The SHA-256 of a file."""
    with open_file(file) as stream:
        digest = hashlib.sha256()
        while part := stream.read(2**20):
            digest.update(part)
    return digest.hexdigest()


def recorded_path(path: str | Path, folder: Path) -> str:
    """A path as a file in a folder records it: relative, or at least without a user's name.

    It is relative if both are in one project, which is below the first two folders of a system.
    """
    target, base = Path(path).absolute(), folder.resolve()
    try:
        shared = Path(os.path.commonpath([target, base]))
    except ValueError:  # two drives
        return str(target)
    if len(shared.parts) > 2:
        return os.path.relpath(target, base)
    return _without_home(str(target))


def located_path(recorded: str, folder: Path) -> Path:
    """The path that a file in a folder records."""
    path = Path(recorded)
    if recorded.startswith("~"):
        with suppress(RuntimeError):  # nobody has this home
            return path.expanduser()
    return path if path.is_absolute() else Path(os.path.normpath(folder.resolve() / path))


def _without_user(text: str) -> str:
    """Text in which paths below the current folder and below the user's home are short."""
    return _without_home(text.replace(f"{Path.cwd()}{os.sep}", ""))


def _without_home(text: str) -> str:
    home = os.path.expanduser("~")
    return text.replace(f"{home}{os.sep}", f"~{os.sep}") if len(home) > 1 else text


@dataclass(frozen=True)
class CheckpointSource:
    """A checkpoint file by path and content."""

    file: str
    sha256: str
    model: str  # its own name for its model

    @classmethod
    def of(cls, file: Path, model: str) -> CheckpointSource:
        return cls(str(file.resolve()), file_hash(file), model)


@dataclass(frozen=True)
class QueriesSource:
    """A query store by path and content."""

    folder: str
    sha256: str  # of the manifest, which has the seed and all shapes
    graph: str
    provenance: Mapping[str, Any]

    @classmethod
    def of(cls, store: QueryStore) -> QueriesSource:
        assert store.folder is not None
        manifest = store.folder / "manifest.json"
        folder = str(store.folder.resolve())
        return cls(folder, file_hash(manifest), store.graph, dict(store.provenance))

    @property
    def imported(self) -> str | None:
        """The BetaE folder that the queries come from; None if they were sampled."""
        source = self.provenance.get("imported")
        return None if source is None else str(source)


@dataclass(frozen=True, kw_only=True)
class Software:
    """The software that made something, and the command."""

    made_by: str
    versions: Mapping[str, str]
    command: str

    @classmethod
    def now(cls, **facts: Any) -> Self:
        """Describe this process, which makes something now."""
        packages = ("lmpnn-kge", "torch", "numpy", "safetensors")
        versions = {name: version(name) for name in packages}
        return cls(
            made_by=f"lmpnn-kge {versions['lmpnn-kge']}",
            versions={"python": platform.python_version(), **versions},
            command=shlex.join([Path(sys.argv[0]).name, *map(_without_user, sys.argv[1:])]),
            **facts,
        )

    def to_json(self, folder: Path | None = None) -> dict[str, Any]:
        """All facts; the paths of inputs are relative to a folder, if one is given."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, kw_only=True)
class Provenance(Software):
    """What every training remembers."""

    backbone: str  # the name of its plugin
    dataset: str | None  # the folder of its graph

    def to_json(self, folder: Path | None = None) -> dict[str, Any]:
        facts = super().to_json()
        if folder is not None:
            facts["dataset"] = self.dataset and recorded_path(self.dataset, folder)
        return facts

    def differences(self, other: Self) -> list[str]:
        """The inputs of another provenance that are not those of this one."""
        return [] if self.backbone == other.backbone else [f"the backbone {other.backbone}"]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read what run.json holds; ValueError says what is missing or wrong."""
        return cls(**cls._fields(content))

    @classmethod
    def _fields(cls, content: Mapping[str, Any]) -> dict[str, Any]:
        versions = content.get("versions")
        return {
            "made_by": _text(content, "made_by", ""),
            "versions": versions if isinstance(versions, dict) else {},
            "command": _text(content, "command", ""),
            "backbone": _text(content, "backbone"),
            "dataset": _text(content, "dataset") if content.get("dataset") is not None else None,
        }


@dataclass(frozen=True, kw_only=True)
class RunProvenance(Provenance):
    """What the training of a network remembers."""

    started: str
    device: str
    precision: str  # fp32 or bf16
    checkpoint: CheckpointSource
    queries: QueriesSource
    graph: str | None = None  # the fingerprint of its graph, if it has one

    def to_json(self, folder: Path | None = None) -> dict[str, Any]:
        facts = super().to_json(folder)
        if folder is not None:
            for source, key in (("checkpoint", "file"), ("queries", "folder")):
                facts[source][key] = recorded_path(facts[source][key], folder)
        return facts

    @classmethod
    def now(cls, **facts: Any) -> Self:
        return super().now(started=time.strftime("%Y-%m-%d %H:%M:%S%z"), **facts)

    def differences(self, other: Self) -> list[str]:
        differing = []
        if self.checkpoint.sha256 != other.checkpoint.sha256:
            differing.append(f"the checkpoint {other.checkpoint.file}")
        if self.queries.sha256 != other.queries.sha256:
            differing.append(f"the queries {other.queries.folder}")
        if None not in (self.graph, other.graph) and self.graph != other.graph:
            differing.append(f"the graph {other.dataset}")
        return differing

    @classmethod
    def _fields(cls, content: Mapping[str, Any]) -> dict[str, Any]:
        checkpoint, queries = _section(content, "checkpoint"), _section(content, "queries")
        sampled = queries.get("provenance")
        backbone = _text(content, "backbone")
        return {
            **super()._fields(content),
            "started": _text(content, "started", ""),
            "device": _text(content, "device", ""),
            "precision": _text(content, "precision"),
            "graph": _text(content, "graph") if content.get("graph") is not None else None,
            "checkpoint": CheckpointSource(
                _text(checkpoint, "file"),
                _text(checkpoint, "sha256"),
                _text(checkpoint, "model", backbone),
            ),
            "queries": QueriesSource(
                _text(queries, "folder"),
                _text(queries, "sha256", ""),
                _text(queries, "graph", "an unnamed graph"),
                sampled if isinstance(sampled, dict) else {},
            ),
        }


@dataclass(frozen=True, kw_only=True)
class PretrainProvenance(Provenance):
    """What the training of an embedding remembers."""

    graph: str  # the fingerprint of its graph

    def differences(self, other: Self) -> list[str]:
        same = self.graph == other.graph
        return super().differences(other) + ([] if same else [f"the graph {other.dataset}"])

    @classmethod
    def _fields(cls, content: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._fields(content), "graph": _text(content, "graph")}


def _text(content: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = content.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"it lacks {key!r}" if key not in content else f"{key} is {short(value)}")
    return value


def _section(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    section = content.get(key)
    if not isinstance(section, dict):
        raise ValueError(f"it lacks {key!r}")
    return section
