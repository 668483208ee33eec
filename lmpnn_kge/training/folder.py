"""Run folders: everything about a training, each file written atomically and with a checksum.

run.json            provenance: versions, checkpoint and its hash, dataset, queries, command
config.yaml         all settings
names.json          entities and relations, in the order of the backbone's rows
state.safetensors   network, optimiser and progress: what --resume reads
model.safetensors   the best network so far: what evaluation reads
metrics.jsonl       a line for every epoch
test.json           the results on the test queries
test-merge.json     the same with disjunctions merged (or test-dnf.json), if a table asks for it
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lmpnn_kge.errors import ConfigError, FileError, RunError, one_line, short
from lmpnn_kge.files import (
    atomic_folder,
    check_regular,
    check_target,
    open_file,
    read_bytes,
    read_text,
    replace_file,
)
from lmpnn_kge.files.checked import (
    check_yaml,
    json_with_checksum,
    with_checksum,
    without_checksum,
    yaml_with_checksum,
)
from lmpnn_kge.files.leftovers import lock, remove_leftovers_in
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.processes import current
from lmpnn_kge.settings.kinds import PretrainSettings, TrainingSettings, TrainSettings
from lmpnn_kge.settings.values import make_settings, to_yaml
from lmpnn_kge.settings.yaml_text import NO_YAML, read_yaml
from lmpnn_kge.training.provenance import PretrainProvenance, Provenance, RunProvenance

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1

#: The files of a training: its settings, where it stands, its epochs, and the names of its rows.
CONFIG, STATE, METRICS = "config.yaml", "state.safetensors", "metrics.jsonl"
NAMES = "names.json"

#: The key of the checksum of the tensors among the facts of their file.
TENSORS = "sha256"

S = TypeVar("S", bound=TrainingSettings)
P = TypeVar("P", bound=Provenance)


@dataclass(frozen=True)
class FolderKind(Generic[S, P]):
    """What is trained in a folder: the mark in run.json, its settings and its provenance."""

    mark: str
    settings: type[S]
    provenance: type[P]


RUN = FolderKind("lmpnn-kge run", TrainSettings, RunProvenance)
PRETRAINING = FolderKind("lmpnn-kge pretraining", PretrainSettings, PretrainProvenance)


@dataclass(frozen=True, eq=False)
class RunFolder(Generic[S, P]):
    """A training on disk.

    Of the processes of a job, the first one writes, and reads the tensors for all.
    """

    path: Path
    settings: S
    provenance: P

    @classmethod
    def create(
        cls,
        path: str | Path,
        kind: FolderKind[S, P],
        settings: S,
        provenance: P,
        vocabulary: Vocabulary | None = None,
    ) -> RunFolder[S, P]:
        """A new run, for which nothing has been computed yet."""
        path = Path(path)
        check_new(path)
        names = {} if vocabulary is None else vocabulary.to_json()
        with atomic_folder(path) as aside:
            (aside / CONFIG).write_text(_settings_text(settings), encoding="utf-8")
            text = json.dumps(names) + "\n"
            (aside / NAMES).write_text(text)
            content = {"kind": kind.mark, "format": FORMAT, **provenance.to_json(path)}
            content["names_sha256"] = hashlib.sha256(text.encode()).hexdigest()
            (aside / "run.json").write_text(json_with_checksum(content))
        return cls(path, settings, provenance)

    @classmethod
    def open(cls, path: str | Path, kind: FolderKind[S, P]) -> RunFolder[S, P]:
        """Read the settings and the provenance of a folder."""
        path = Path(path)
        if not path.exists():
            raise RunError(f"{path} does not exist; name the folder of a run")
        content = _read_mark(path)
        if content.get("kind") != kind.mark:
            raise RunError(
                f"{path} is not a run folder: run.json is missing or belongs to something else"
            )
        if content.get("format") != FORMAT:
            raise RunError(
                f"{path} is a run of format {short(content.get('format'))}, but this version reads "
                f"format {FORMAT}; use the version that made it: {short(content.get('made_by'))}"
            )
        try:
            provenance = kind.provenance.from_json(without_checksum(content))
        except ValueError as error:
            raise RunError(f"{path / 'run.json'} is damaged: {one_line(error)}") from error
        try:
            text = read_text(path / CONFIG)
            check_yaml(text)
            settings = make_settings(kind.settings, read_yaml(text))
        except (OSError, ConfigError, TypeError, *NO_YAML) as error:
            raise RunError(f"{path / CONFIG} is damaged: {one_line(error)}") from error
        return cls(path, settings, provenance)

    def check_inputs(self, provenance: P, vocabulary: Vocabulary | None = None) -> None:
        """RunError if the run began with other inputs."""
        differing = self.provenance.differences(provenance)
        if vocabulary is not None and not self.vocabulary().has_ids_of(vocabulary):
            differing.append(f"the names in {provenance.dataset or 'the checkpoint'}")
        if differing:
            raise RunError(
                f"{self.path} did not begin with {' and '.join(differing)}; choose another --out"
            )

    def check_settings(self, settings: S) -> None:
        """ConfigError if the run began with other settings."""
        ours, theirs = vars(self.settings), vars(settings)
        differing = [key for key, value in ours.items() if theirs[key] != value]
        if differing:
            raise ConfigError(
                f"{self.path} began with other settings of {', '.join(differing)}; leave them out, "
                "or choose another --out"
            )

    def vocabulary(self) -> Vocabulary:
        """The names of the backbone's rows."""
        file = self.path / NAMES
        content = self.read_json(NAMES)
        recorded = _read_mark(self.path).get("names_sha256")  # older versions did not record it
        if recorded is not None and hashlib.sha256(read_bytes(file)).hexdigest() != recorded:
            raise RunError(f"{file} is damaged: its checksum is not that of run.json")
        try:
            return Vocabulary.from_json(content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{file} is damaged: {one_line(error)}") from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock this folder; RunError if another process holds the lock.

        The operating system frees the lock when the process ends, however it ends. Files that a
        killed process left unfinished are removed.
        """
        with open_file(self.path / "run.json") as stream:
            try:
                lock(stream.fileno())
            except BlockingIOError as error:
                raise RunError(f"{self.path} is being trained by another process") from error
            remove_leftovers_in(self.path)
            yield

    def describe(self) -> bytes:
        """The settings and the provenance, for processes that have not opened this folder."""
        content = {
            "settings": dict(vars(self.settings)),
            "provenance": self.provenance.to_json(self.path),
        }
        return json.dumps(content).encode()

    @classmethod
    def described(cls, path: str | Path, kind: FolderKind[S, P], text: bytes) -> RunFolder[S, P]:
        """The folder that another process describes."""
        content = json.loads(text)
        settings = make_settings(kind.settings, content["settings"])
        return cls(Path(path), settings, kind.provenance.from_json(content["provenance"]))

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically: the old one stays until the new one is complete."""
        if not current().first:
            return
        try:
            replace_file(content, self.path / name)
        except FileError as error:
            raise RunError(f"{error}; {self.path} stays as it was last saved") from error

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        self.write(name, json_with_checksum(content).encode())

    def write_settings(self, settings: S) -> None:
        self.write(CONFIG, _settings_text(settings).encode())

    def write_epochs(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Write a line for every epoch."""
        lines = (json.dumps(with_checksum(record)) + "\n" for record in records)
        self.write(METRICS, "".join(lines).encode())

    def write_tensors(
        self, name: str, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]
    ) -> None:
        """Write tensors and JSON facts to one file, with a checksum of each."""
        from safetensors.torch import save

        on_cpu = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        # One key, because safetensors writes several in any order, and the same run must give the
        # same bytes.
        text = json.dumps(with_checksum({**facts, TENSORS: _tensor_hash(on_cpu)}))
        self.write(name, save(on_cpu, {"facts": text}))

    def remove(self, name: str) -> None:
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{self.path / name} cannot be removed: {error.strerror}") from error

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def read_json(self, name: str) -> dict[str, Any]:
        content = _read_json(self.path / name)
        try:
            return without_checksum(content)
        except ValueError as error:
            raise RunError(f"{self.path / name} is damaged: {error}") from error

    def read_epochs(self) -> list[Any]:
        """The records of the epochs, and ValueError or OSError if they cannot be read."""
        if not (self.path / METRICS).exists():  # no epoch is finished yet
            return []
        lines = read_text(self.path / METRICS).splitlines()
        return [without_checksum(json.loads(line)) for line in lines]

    def read_tensors(self, name: str) -> tuple[dict[str, Tensor], Any]:
        """Read what `write_tensors` wrote: all processes of a job get the same."""
        processes = current()
        if processes.alone:
            return self._read_tensors(name)
        from safetensors.torch import load, save

        tensors, facts = self._read_tensors(name) if processes.first else ({}, {})
        tensors = load(processes.broadcast(save(tensors)))
        return tensors, json.loads(processes.broadcast(json.dumps(facts).encode()))

    def _read_tensors(self, name: str) -> tuple[dict[str, Tensor], Any]:
        with self._tensors(name) as content:
            tensors = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118
            facts, checksum = _facts(content)
            if checksum is not None and _tensor_hash(tensors) != checksum:
                raise ValueError("its numbers have changed since it was written")
            return tensors, facts

    def read_facts(self, name: str) -> Any:
        """Read only the facts of what `write_tensors` wrote."""
        with self._tensors(name) as content:
            return _facts(content)[0]

    @contextmanager
    def _tensors(self, name: str) -> Iterator[Any]:
        from safetensors import SafetensorError, safe_open

        file = self.path / name
        try:
            check_regular(file)
            with safe_open(file, "pt") as content:
                yield content
        except (
            OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError,
            RecursionError, MemoryError,
        ) as error:  # fmt: skip
            raise RunError(f"{file} is damaged or missing: {one_line(error)}") from error


def _facts(content: Any) -> tuple[dict[str, Any], str | None]:
    """The facts in a file of tensors, and the checksum of these, if it is recorded."""
    facts = without_checksum(json.loads(content.metadata()["facts"]))
    return facts, facts.pop(TENSORS, None)


def _tensor_hash(tensors: Mapping[str, Tensor]) -> str:
    """A hash of the names and the numbers of tensors."""
    import torch

    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _settings_text(settings: TrainingSettings) -> str:
    return yaml_with_checksum(to_yaml(settings))


def check_new(path: str | Path) -> None:
    """RunError or FileError if no run can begin here, which is best known before the work."""
    if is_run(path):
        raise RunError(
            f"{path} is already a run; continue it with --resume, or choose another --out"
        )
    check_target(path)


def is_run(path: str | Path, kind: FolderKind[Any, Any] | None = None) -> bool:
    """Whether a folder is a run of any format, and of a kind if one is given."""
    marks = (RUN.mark, PRETRAINING.mark) if kind is None else (kind.mark,)
    return _read_mark(Path(path)).get("kind") in marks


def _read_mark(path: Path) -> dict[str, Any]:
    """The content of run.json; nothing if it is missing or cannot be read."""
    try:
        return _read_json(path / "run.json")
    except RunError:
        return {}


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_text(file))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{file} is damaged or missing: {one_line(error)}") from error
    if not isinstance(content, dict):
        raise RunError(f"{file} is damaged: it does not hold a mapping")
    return content
