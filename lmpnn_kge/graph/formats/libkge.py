"""LibKGE's dataset folders: `dataset.yaml` beside tab-separated `.del` files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from lmpnn_kge.errors import DatasetError, short
from lmpnn_kge.files import read_text
from lmpnn_kge.graph.formats.content import Content, LazySplits
from lmpnn_kge.graph.formats.number_rows import parse_rows
from lmpnn_kge.graph.formats.table_rows import MAX_LINE
from lmpnn_kge.graph.triples import SPLITS, Triples
from lmpnn_kge.graph.vocabulary import Labels, Vocabulary, name_rows

IDS, STRINGS = ("entity_ids", "relation_ids"), ("entity_strings", "relation_strings")

#: Rows per id that a map of ids may have: more is a mistake, not a graph with gaps. A few more are
#: allowed for tiny maps. Every row takes memory, and a file must not take more than it is worth.
MAX_GAP, FEW_ROWS = 10, 1000

#: Keys of old files, and their names today.
RENAMED = {"entity_map": "entity_ids", "relation_map": "relation_ids"}


def recognises(folder: Path) -> bool:
    """A folder with LibKGE's id files is one of LibKGE's, even if dataset.yaml is missing."""
    return any((folder / name).exists() for name in ("dataset.yaml", "entity_ids.del"))


def read(folder: Path) -> Content:
    """Read the names of a dataset folder; its triples are read when they are needed."""
    dataset = LibkgeFolder.open(folder)
    vocabulary = dataset.vocabulary()

    def triples(split: str) -> Triples:
        return dataset.triples(split, vocabulary)

    return Content(dataset.name, vocabulary, LazySplits(dataset.splits, triples))


@dataclass(frozen=True)
class LibkgeFolder:
    """The options of a dataset folder, and the files that they name."""

    folder: Path
    options: Mapping[str, Any]  # of dataset.yaml, with dotted keys

    @classmethod
    def open(cls, folder: Path) -> LibkgeFolder:
        content = _read_yaml(folder / "dataset.yaml")
        section = content.get("dataset") if isinstance(content, Mapping) else None
        if not isinstance(section, Mapping):
            raise DatasetError(f"{folder / 'dataset.yaml'} has no section 'dataset'")
        return cls(folder, flatten(section))

    @property
    def name(self) -> str:
        return str(self.options.get("name") or self.folder.resolve().name)

    @property
    def splits(self) -> list[str]:
        """The keys of all files of triples."""
        keys = {key.split(".")[1] for key in self.options if key.startswith("files.")}
        named = {key for key in keys if self.options.get(f"files.{key}.type") == "triples"}
        return [*SPLITS, *sorted(named.difference(SPLITS))]

    def path(self, key: str) -> Path:
        """The file of a key such as `train` or `entity_ids`."""
        old = next((old for old, new in RENAMED.items() if new == key), key)
        given = (self.options.get(option) for option in (f"files.{key}.filename", old))
        name = Path(next((name for name in given if isinstance(name, str)), f"{key}.del"))
        if name.is_absolute() or ".." in name.parts:
            raise DatasetError(
                f"{self.folder / 'dataset.yaml'} names {short(str(name))!r} for {key}, which is "
                "not in its folder"
            )
        return self.folder / name

    def vocabulary(self) -> Vocabulary:
        entity_ids, relation_ids = self._ids("entity_ids"), self._ids("relation_ids")
        return Vocabulary(
            entity_ids,
            relation_ids,
            self._labels("entity_strings", entity_ids),
            self._labels("relation_strings", relation_ids),
            self._labels("entity_types", entity_ids),
        )

    def triples(self, split: str, vocabulary: Vocabulary) -> Triples:
        """The triples of a split, [n, 3]; DatasetError if one is outside the vocabulary."""
        path = self.path(split)
        triples = _read_triples(path)
        limits = vocabulary.num_entities, vocabulary.num_relations, vocabulary.num_entities
        wrong = ((triples < 0) | (triples >= limits)).any(axis=1).nonzero()[0]
        if len(wrong):
            raise DatasetError(
                f"{path} line {wrong[0] + 1} has {triples[wrong[0]].tolist()}, but there are only "
                f"{limits[0]} entities and {limits[1]} relations"
            )
        return triples

    def _ids(self, key: str) -> list[str]:
        path = self.path(key)
        ids: dict[int, str] = {}
        for number, (index, value) in enumerate(_read_pairs(path), start=1):
            if not (index.isascii() and index.isdigit() and len(index) < 19):
                raise DatasetError(
                    f"{path} line {number} starts with {short(repr(index))}, not an index"
                )
            if int(index) in ids:
                raise DatasetError(f"{path} line {number} gives index {index} a second time")
            ids[int(index)] = value
        if not ids:
            raise DatasetError(f"{path} is empty")
        if has_gaps(max(ids) + 1, len(ids)):
            raise DatasetError(f"{path} has {len(ids)} ids but indexes up to {max(ids)}")
        try:
            return name_rows([ids.get(index) for index in range(max(ids) + 1)])
        except ValueError as error:
            raise DatasetError(f"{path}: {error}") from error

    def _labels(self, key: str, ids: list[str]) -> Labels | None:
        """Human-readable names in the order of the ids; None if the folder has no such file."""
        if not self.options.get(f"files.{key}.filename"):
            return None
        by_index = self.options.get(f"files.{key}.type", "map") == "map"
        labels: dict[str, str] = {}
        for name, label in _read_pairs(self.path(key)):
            if label:
                labels.setdefault(name, label)
        return [labels.get(str(row) if by_index else id_) for row, id_ in enumerate(ids)]


def has_gaps(rows: int, found: int) -> bool:
    """Whether so few things that were found cannot need so many rows."""
    return rows > MAX_GAP * found + FEW_ROWS


def flatten(options: Mapping[str, Any], depth: int = 4) -> dict[str, Any]:
    """Nested dictionaries as one with dotted keys; what lies deeper than LibKGE's own is left."""
    flat: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, Mapping) and depth > 1:
            flat |= {f"{key}.{rest}": v for rest, v in flatten(value, depth - 1).items()}
        else:
            flat[str(key)] = value
    return flat


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into one line with its name."""
    try:
        if not path.is_file():
            raise DatasetError(f"{path} is missing")
        yield
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8: {error}") from error
    except MemoryError as error:
        raise DatasetError(f"{path} is too large for the memory of this machine") from error
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise DatasetError(
            f"{path} is not {what}: {short(' '.join(str(error).split()))}"
        ) from error


class _Loader(yaml.SafeLoader):
    """YAML without aliases: with them, a few lines can expand to more than fits in memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has aliases, which no dataset needs")
        return super().compose_node(parent, index)


def _read_yaml(path: Path) -> Any:
    with _reading(path, "a readable YAML file"):
        try:
            loader = _Loader(read_text(path))
            return loader.get_single_data()
        except (AttributeError, KeyError) as error:  # for a value that is not of its declared type
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a map file, cut at the first tab."""
    with _reading(path, "a readable map"), path.open(encoding="utf-8") as lines:
        for number, line in enumerate(iter(lambda: lines.readline(MAX_LINE), ""), start=1):
            if len(line) == MAX_LINE:
                raise DatasetError(f"{path} line {number} is longer than {MAX_LINE:,} characters")
            name, tab, value = line.rstrip("\n").partition("\t")
            if not tab:
                raise DatasetError(f"{path} line {number} has no tab: {short(repr(line.strip()))}")
            yield name, value


def _read_triples(path: Path) -> Triples:
    with _reading(path, "a file of index triples"):
        content = path.read_bytes()
        triples = parse_rows(content)
        if triples is not None:
            return triples
        if not content.strip():
            return np.empty((0, 3), np.int64)
        return np.loadtxt(
            path, np.int64, comments=None, delimiter="\t", usecols=(0, 1, 2), ndmin=2,
            encoding="utf-8",
        )  # fmt: skip
