"""Run folders: all that a training run is and was, each file written whole or not at all.

run.json            provenance: versions, checkpoint and its hash, dataset, queries, command
config.yaml         the settings, all of them
names.json          entities and relations, in the order of the backbone's rows
state.safetensors   where training stands: network, optimiser, progress; what --resume reads
model.safetensors   the best network so far: what evaluation reads
metrics.jsonl       a line for every epoch
test.json           the metrics on the test queries
test-merge.json     the same with disjunctions merged, or test-dnf.json, where a table asks for it
"""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import yaml

from lmpnn_kge.errors import ConfigError, DatasetError, RunError, short
from lmpnn_kge.files import UNFINISHED, check_place, whole_folder, write_whole
from lmpnn_kge.settings import NO_YAML, Config, Recipe, Settings, make_settings, to_yaml

if TYPE_CHECKING:
    from torch import Tensor

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

FORMAT = 1

S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, eq=False)
class RunFolder(Generic[S]):
    """A run on disk, of a network or of an embedding, as its settings say."""

    path: Path
    config: S
    facts: Mapping[str, Any]

    @classmethod
    def create(
        cls, path: str | Path, config: S, facts: Mapping[str, Any], names: Mapping[str, Any]
    ) -> RunFolder[S]:
        """A new run that nothing has been computed for."""
        path = Path(path)
        cls.check_new(path)
        try:
            with whole_folder(path, may_replace=lambda folder: False) as aside:
                (aside / "config.yaml").write_text(to_yaml(config), encoding="utf-8")
                (aside / "names.json").write_text(json.dumps(names) + "\n")
                content = {"kind": config.kind, "format": FORMAT, **facts}
                (aside / "run.json").write_text(json.dumps(content, indent=1) + "\n")
        except DatasetError as error:
            raise RunError(str(error)) from error
        return cls.open(path, type(config))

    @staticmethod
    def check_new(path: str | Path) -> None:
        """RunError where no new run can be begun, which is best known before the work."""
        if is_run(Path(path)):
            raise RunError(
                f"{path} is a run already; go on with it with --resume, or choose another --out"
            )
        try:
            check_place(path, may_replace=lambda folder: False)
        except DatasetError as error:
            raise RunError(str(error)) from error

    @classmethod
    def open(cls, path: str | Path, kind: type[S]) -> RunFolder[S]:
        """What is in a folder; kind is Config or Recipe."""
        path = Path(path)
        if not path.exists():
            raise RunError(f"{path} does not exist; name the folder of a run")
        facts = _run_facts(path)
        if facts.get("kind") != kind.kind:
            raise RunError(f"{path} is no run folder: it has no run.json of a run")
        if facts.get("format") != FORMAT:
            raise RunError(
                f"{path} is a run of format {short(facts.get('format'))}, but this version reads "
                f"format {FORMAT}; use the version that made it: {short(facts.get('made_by'))}"
            )
        if kind is Config:
            _check_facts(facts, path / "run.json")
        try:
            text = (path / "config.yaml").read_text(encoding="utf-8")
            config = make_settings(kind, yaml.safe_load(text))
        except (OSError, ConfigError, TypeError, *NO_YAML) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"{path / 'config.yaml'} is damaged: {reason}") from error
        return cls(path, config, facts)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """RunError where another process trains in this folder; its end, however it comes, ends it.

        What a killed one left half-written is taken away.
        """
        with (self.path / "run.json").open("rb") as stream:
            try:
                if fcntl is not None:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunError(f"{self.path} is being trained by another process") from error
            except OSError:
                pass  # a file system without locks
            for left in self.path.glob(f".*{UNFINISHED}"):
                with suppress(OSError):
                    left.unlink()
            yield

    def write(self, name: str, content: bytes) -> None:
        """Put a file in its place; what was there before is kept until the new one is whole."""
        try:
            write_whole(self.path / name, content)
        except DatasetError as error:
            raise RunError(f"{error}; {self.path} stays as it was last saved") from error

    def write_json(self, name: str, content: Any) -> None:
        self.write(name, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())

    def write_tensors(self, name: str, tensors: Mapping[str, Tensor], facts: Any) -> None:
        """Tensors with whatever belongs to them, in one file."""
        from safetensors.torch import save

        on_cpu = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        self.write(name, save(on_cpu, {"facts": json.dumps(facts)}))

    def remove(self, name: str) -> None:
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{self.path / name} cannot be removed: {error.strerror}") from error

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def read_json(self, name: str) -> dict[str, Any]:
        return _read_json(self.path / name)

    def read_tensors(self, name: str) -> tuple[dict[str, Tensor], Any]:
        from safetensors import SafetensorError, safe_open

        file = self.path / name
        try:
            with safe_open(file, "pt") as content:
                tensors = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118
                return tensors, json.loads(content.metadata()["facts"])
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"{file} is damaged or missing: {short(str(error))}") from error


def _check_facts(facts: Mapping[str, Any], file: Path) -> None:
    """RunError where a run does not say what it is made of."""
    try:
        checkpoint, queries = facts["checkpoint"], facts["queries"]
        texts = [facts["backbone"], facts["precision"], facts["dataset"] or ""]
        texts += [checkpoint["file"], checkpoint["sha256"], queries["folder"]]
    except (KeyError, TypeError) as error:
        raise RunError(f"{file} is damaged: it lacks {error}") from error
    if not all(isinstance(text, str) for text in texts):
        raise RunError(f"{file} is damaged: it does not say what the run is made of")


def is_run(path: Path, kind: type[Settings] | None = None) -> bool:
    """Whether a folder is a run of any format, of a kind or of any."""
    kinds = (Config.kind, Recipe.kind) if kind is None else (kind.kind,)
    return _run_facts(path).get("kind") in kinds


def _run_facts(path: Path) -> dict[str, Any]:
    """What run.json says; nothing where there is none that can be read."""
    try:
        return _read_json(path / "run.json")
    except RunError:
        return {}


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{file} is damaged or missing: {short(str(error))}") from error
    if not isinstance(content, dict):
        raise RunError(f"{file} is damaged: it holds no mapping")
    return content


def provenance() -> dict[str, Any]:
    """What a result may depend on: versions, and the command line of this process."""
    packages = ("lmpnn-kge", "torch", "numpy", "safetensors")
    return {
        "made_by": f"lmpnn-kge {version('lmpnn-kge')}",
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def file_hash(file: str | Path) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with Path(file).open("rb") as stream:
        while part := stream.read(2**20):
            digest.update(part)
    return digest.hexdigest()
