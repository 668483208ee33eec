"""LibKGE's dataset folders: `dataset.yaml` beside tab-separated `.del` files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from lmpnn_kge.errors import DatasetError, choices, examples, short

SPLITS = ("train", "valid", "test")
IDS, STRINGS = ("entity_ids", "relation_ids"), ("entity_strings", "relation_strings")

#: The gaps that a map of ids may have: more rows than this per id is a mistake, not a graph.
MAX_GAP = 1000

#: Keys of old files, and what they are called today.
RENAMED = {"entity_map": "entity_ids", "relation_map": "relation_ids"}


@dataclass(frozen=True)
class LibkgeDataset:
    """A graph as LibKGE keeps it; files are read when they are asked for."""

    folder: Path
    options: Mapping[str, Any]  # of dataset.yaml, with dotted keys

    @classmethod
    def open(cls, folder: str | Path) -> LibkgeDataset:
        folder = Path(folder)
        try:
            is_folder = folder.is_dir()
        except OSError as error:
            raise DatasetError(f"{short(str(folder))} cannot be read: {error.strerror}") from error
        if not is_folder:
            raise DatasetError(f"{folder} is not a folder; a dataset folder holds dataset.yaml")
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

    @cached_property
    def entity_ids(self) -> list[str]:
        return self._ids("entity_ids")

    @cached_property
    def relation_ids(self) -> list[str]:
        return self._ids("relation_ids")

    def triples(self, split: str) -> npt.NDArray[np.int64]:
        """The triples of a split as indexes of subject, relation and object, [n, 3]."""
        if split not in self.splits:
            raise DatasetError(
                f"{self.folder} has no split {split!r}; {choices(split, self.splits)}"
            )
        path = self.path(split)
        triples = _read_triples(path)
        limits = len(self.entity_ids), len(self.relation_ids), len(self.entity_ids)
        wrong = ((triples < 0) | (triples >= limits)).any(axis=1).nonzero()[0]
        if len(wrong):
            raise DatasetError(
                f"{path} line {wrong[0] + 1} has {triples[wrong[0]].tolist()}, but there are only "
                f"{limits[0]} entities and {limits[1]} relations"
            )
        return triples

    def entity_strings(self) -> list[str | None]:
        """Human-readable names in the order of the ids, None where there is none."""
        return self._strings("entity", self.entity_ids)

    def relation_strings(self) -> list[str | None]:
        return self._strings("relation", self.relation_ids)

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
        if max(ids) > MAX_GAP * len(ids):
            raise DatasetError(f"{path} has {len(ids)} ids but indexes up to {max(ids)}")
        try:
            return name_rows([ids.get(index) for index in range(max(ids) + 1)])
        except ValueError as error:
            raise DatasetError(f"{path}: {error}") from error

    def _strings(self, kind: str, ids: list[str]) -> list[str | None]:
        key = f"{kind}_strings"
        if not self.options.get(f"files.{key}.filename"):
            return list(ids)
        by_index = self.options.get(f"files.{key}.type", "map") == "map"
        strings: dict[str, str] = {}
        for name, value in _read_pairs(self.path(key)):
            strings.setdefault(name, value)
        return [strings.get(str(row) if by_index else id_) for row, id_ in enumerate(ids)]


def flatten(options: Mapping[str, Any], depth: int = 4) -> dict[str, Any]:
    """Nested dictionaries as one with dotted keys; what lies deeper than LibKGE's own is left."""
    flat: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, Mapping) and depth > 1:
            flat |= {f"{key}.{rest}": v for rest, v in flatten(value, depth - 1).items()}
        else:
            flat[str(key)] = value
    return flat


def name_rows(ids: list[Any]) -> list[str]:
    """The ids of a table's rows as distinct strings; a row without one is named as a blank node."""
    named = [f"_:{row}" if id_ is None else id_ for row, id_ in enumerate(ids)]
    if not all(isinstance(id_, str) for id_ in named):
        raise ValueError("ids must be strings")
    twice = [id_ for id_, count in Counter(named).items() if count > 1]
    if twice:
        raise ValueError(f"ids must stand for one row each, unlike {examples(twice)}")
    return named


def write_dataset(
    folder: Path,
    name: str,
    splits: Mapping[str, Collection[tuple[str, str, str]]],
    relation_labels: Mapping[str, str] | None = None,
    header: str | None = None,
) -> None:
    """Fill a folder with named triples as LibKGE keeps them, numbered in the order of their names.

    header is a comment for the first line of `dataset.yaml`.
    """
    every = [triple for triples in splits.values() for triple in triples]
    entities = sorted({entity for head, _, tail in every for entity in (head, tail)})
    relations = sorted({relation for _, relation, _ in every})
    labels = relation_labels or {}
    tables: dict[str, list[tuple[object, ...]]] = {
        "entity_ids": list(enumerate(entities)),
        "entity_strings": [(id_, id_) for id_ in entities],
        "relation_ids": list(enumerate(relations)),
        "relation_strings": [(id_, labels.get(id_, id_)) for id_ in relations],
    }
    options: dict[str, object] = {
        "name": name, "num_entities": len(entities), "num_relations": len(relations)
    }  # fmt: skip
    for key in tables:
        options[f"files.{key}.type"] = "map" if key in IDS else "idmap"
    entity, relation = ({id_: row for row, id_ in enumerate(ids)} for ids in (entities, relations))
    for split, triples in splits.items():
        tables[split] = sorted((entity[h], relation[r], entity[t]) for h, r, t in triples)
        options[f"files.{split}.type"] = "triples"
        options[f"files.{split}.split_type"] = split
        options[f"files.{split}.size"] = len(triples)
    for key, rows in tables.items():
        options[f"files.{key}.filename"] = f"{key}.del"
        _write_text(folder / f"{key}.del", "".join("\t".join(map(str, r)) + "\n" for r in rows))
    comment = "" if header is None else f"{header}\n"
    _write_text(folder / "dataset.yaml", comment + yaml.safe_dump({"dataset": options}))


def _write_text(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Whatever goes wrong while a file is read is said in one line with its name."""
    try:
        if not path.is_file():
            raise DatasetError(f"{path} is missing")
        yield
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8: {error}") from error
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise DatasetError(
            f"{path} is not {what}: {short(' '.join(str(error).split()))}"
        ) from error


class _Loader(yaml.SafeLoader):
    """YAML without aliases, by which a few lines can stand for more than fits in memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has aliases, which no dataset needs")
        return super().compose_node(parent, index)


def _read_yaml(path: Path) -> Any:
    with _reading(path, "a readable YAML file"):
        try:
            loader = _Loader(path.read_text(encoding="utf-8"))
            return loader.get_single_data()
        except (AttributeError, KeyError) as error:  # of a value that is not of its declared type
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a map file, cut at the first tab."""
    with _reading(path, "a readable map"), path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            name, tab, value = line.rstrip("\n").partition("\t")
            if not tab:
                raise DatasetError(f"{path} line {number} has no tab: {short(repr(line.strip()))}")
            yield name, value


def _read_triples(path: Path) -> npt.NDArray[np.int64]:
    with _reading(path, "a file of index triples"):
        with path.open(encoding="utf-8") as lines:
            if not any(line.strip() for line in lines):
                return np.empty((0, 3), np.int64)
        return np.loadtxt(
            path, np.int64, comments=None, delimiter="\t", usecols=(0, 1, 2), ndmin=2,
            encoding="utf-8",
        )  # fmt: skip
