"""Query stores: folders of memory-mapped columns beside a manifest, written atomically.

    manifest.json     graph, splits, patterns, shape and SHA-256 of every array, provenance
    entities.json     the names of the entities in the order of their rows; likewise relations.json
    test/2p.constants.npy, .relations.npy, .easy.offsets.npy, .easy.values.npy, …

Opening a store checks its shapes. An array is compared with its checksum when it is first used.

Relations are numbered over [0, 2R): number r + R is the inverse of r, so an atom over it is the
atom over r with head and tail exchanged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, QueryError, choices, one_line, short
from lmpnn_kge.files import atomic_folder, check_regular, read_bytes, read_text
from lmpnn_kge.files.checked import json_with_checksum, without_checksum
from lmpnn_kge.files.leftovers import UNFINISHED, restore
from lmpnn_kge.graph.answers import Answers, Int32s
from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.graph.vocabulary import Vocabulary, name_rows
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.formula import Formula
from lmpnn_kge.query.patterns import ordered, parse_pattern

FORMAT = 1
KIND = "lmpnn-kge query store"


@dataclass(frozen=True, eq=False)
class QueryStore:
    """The queries of a graph, by split and by the name of their pattern."""

    graph: str
    vocabulary: Vocabulary
    splits: Mapping[str, Mapping[str, Queries]]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None  # that it was read from

    @classmethod
    def open(cls, folder: str | Path) -> QueryStore:
        """Read the manifest and the names, and check the columns, which stay on disk."""
        folder = Path(folder)
        if folder.name.endswith(UNFINISHED):
            raise DatasetError(f"{folder} is unfinished: it was left by a process that was stopped")
        restore(folder)
        manifest = _manifest(folder)
        if manifest.get("format") != FORMAT:
            raise DatasetError(
                f"{folder} is a query store of format {short(manifest.get('format'))}, but this "
                f"version reads format {FORMAT}; make it again or update lmpnn-kge"
            )
        with _reading(folder / "manifest.json"):
            manifest = without_checksum(manifest)
            graph, provenance = manifest["graph"], manifest["provenance"]
            if not isinstance(graph, str) or not isinstance(provenance, dict):
                raise TypeError("it does not name its graph")
        vocabulary = Vocabulary(_read_ids(folder, "entities"), _read_ids(folder, "relations"))
        limits = vocabulary.num_entities, 2 * vocabulary.num_relations
        with _reading(folder / "manifest.json"):
            splits = {
                split: _Split(folder / _split_name(split), dict(entries), limits)
                for split, entries in manifest["splits"].items()
            }
        for patterns in splits.values():
            for name in patterns:
                patterns.check(name)  # and closed again: a process has few descriptors
        _check_names(folder, manifest.get("names"))
        return cls(graph, vocabulary, splits, provenance, folder)

    def verify(self) -> int:
        """Read all arrays; DatasetError names a damaged one. Returns how many have a checksum."""
        opened = [split for split in self.splits.values() if isinstance(split, _Split)]
        for split in opened:
            for name in split:
                split.verify(name)
        return sum(len(split.checksums(name)) for split in opened for name in split)

    def __len__(self) -> int:
        """The number of queries in all splits."""
        return sum(map(_count, self.splits.values()))

    def __repr__(self) -> str:
        counts = (f"{_count(patterns):,} {split}" for split, patterns in self.splits.items())
        return f"QueryStore({short(self.graph)}: {', '.join(counts)} queries)"

    def queries(self, split: str) -> Mapping[str, Queries]:
        """The queries of a split, by the name of their pattern."""
        if split not in self.splits:
            raise QueryError(
                f"{self.folder or 'the query store'} has no split {split!r}; "
                f"{choices(split, self.splits)}"
            )
        return self.splits[split]

    def names(self, answers: Int32s) -> list[Any]:
        """The names of answers [m]; those of tuples [m, k] are lists."""
        ids = self.vocabulary.entity_ids
        if len(answers) and not 0 <= answers.min() <= answers.max() < len(ids):
            raise DatasetError(f"{self.folder} is damaged: it has answers that are not entities")
        if answers.ndim == 1:
            return [ids[entity] for entity in answers]
        return [[ids[entity] for entity in row] for row in answers]

    def question(self, queries: Queries, row: int) -> Formula:
        """One query as a formula over names."""
        names = self.vocabulary
        inverse, rows = np.divmod(queries.relations[row], names.num_relations)
        constants = [names.entity_ids[entity] for entity in queries.constants[row]]
        relations = [
            (names.relation_ids[relation], bool(inverted))
            for relation, inverted in zip(rows, inverse, strict=True)
        ]
        return queries.pattern.fill(constants, relations)


class _Split(Mapping[str, Queries]):
    """The patterns of a split; each is mapped while somebody uses it, and verified once."""

    def __init__(self, folder: Path, entries: dict[str, Any], limits: tuple[int, int]):
        self.folder = folder
        self.entries = entries
        self.limits = limits  # of the numbers of entities and of relations
        # Weak, because every mapped file holds a descriptor, of which a process has few.
        self.mapped: WeakValueDictionary[str, Queries] = WeakValueDictionary()
        self.verified: set[str] = set()

    def __getitem__(self, name: str) -> Queries:
        queries = self.mapped.get(name)
        if queries is None:
            queries = self.mapped[name] = self._map(name)
            self.verify(name, queries)
        return queries

    def check(self, name: str) -> None:
        """DatasetError if arrays do not fit together; the answers are not read."""
        queries = self._map(name)
        with _reading(self._files(name)):
            _check(queries, self.limits)

    def verify(self, name: str, queries: Queries | None = None) -> None:
        """Compare arrays with their checksums, and check the answers; only the first time."""
        if name in self.verified:
            return
        queries = self._map(name) if queries is None else queries
        checksums = self.checksums(name)
        for column, array in _columns(queries).items():
            if checksums and checksums.get(column) != _checksum(array):
                file = self.folder / _file_name(name, column)
                raise DatasetError(
                    f"{file} is damaged: its checksum is not that of manifest.json; sample or "
                    "import the queries again"
                )
        with _reading(self._files(name)):
            _check_answers(queries, self.limits[0])
        self.verified.add(name)

    def checksums(self, name: str) -> dict[str, str]:
        """The recorded checksums of the arrays of a pattern; none in a store of older versions."""
        with _reading(self.folder.parent / "manifest.json"):
            return dict(self.entries[name].get("sha256", {}))

    def _map(self, name: str) -> Queries:
        entry = self.entries[name]
        with _reading(self.folder.parent / "manifest.json"):
            pattern, shapes = parse_pattern(entry["pattern"]), dict(entry["arrays"])
        arrays = {
            column: _map_array(self.folder / _file_name(name, column), column, shape)
            for column, shape in shapes.items()
        }
        with _reading(self._files(name)):
            easy, hard = (
                Answers(arrays[f"{s}.offsets"], arrays[f"{s}.values"], arrays.get(f"{s}.costs"))
                for s in ("easy", "hard")
            )
            return Queries(pattern, arrays["constants"], arrays["relations"], easy, hard)

    def _files(self, name: str) -> Path:
        return self.folder / f"{quote(name, safe='')}.*.npy"

    def count(self) -> int:
        """The number of queries, by the shapes of their arrays."""
        return sum(int(entry["arrays"]["easy.offsets"][0]) - 1 for entry in self.entries.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def _count(patterns: Mapping[str, Queries]) -> int:
    """The number of queries of all patterns; those in files are not read for it."""
    return patterns.count() if isinstance(patterns, _Split) else sum(map(len, patterns.values()))


def write_store(store: QueryStore, folder: str | Path) -> QueryStore:
    """Write a store to a folder, replacing the store that may be there, and open it."""
    folder = Path(folder)
    with atomic_folder(folder, may_replace=is_store) as aside:
        splits = {}
        names = store.vocabulary
        limits = names.num_entities, 2 * names.num_relations
        for split in sorted(map(_split_name, store.splits), key=SPLITS.index):
            (aside / split).mkdir()
            patterns = store.splits[split]
            splits[split] = {
                name: _write(aside / split, name, patterns[name], limits)
                for name in ordered(patterns)
            }
        checksums = {}
        for role, ids in (("entities", names.entity_ids), ("relations", names.relation_ids)):
            content = (json.dumps(name_rows(ids), indent=0) + "\n").encode()
            (aside / f"{role}.json").write_bytes(content)
            checksums[f"{role}.json"] = hashlib.sha256(content).hexdigest()
        manifest = {
            "kind": KIND,
            "format": FORMAT,
            "graph": store.graph,
            "names": checksums,
            "splits": splits,
            "provenance": dict(store.provenance),
        }
        # Last, because a folder without it is not a store.
        (aside / "manifest.json").write_text(json_with_checksum(manifest))
    return QueryStore.open(folder)


def is_store(folder: Path) -> bool:
    """Whether a folder is a query store of any format, damaged or not."""
    try:
        return bool(_manifest(folder))
    except DatasetError:
        return False


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / "manifest.json"
    with _reading(file):
        if not file.is_file():
            raise DatasetError(f"{folder} is not a query store: it has no manifest.json")
        content = json.loads(read_text(file))
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise ValueError("it belongs to something else")
        return content


def _read_ids(folder: Path, name: str) -> list[str]:
    with _reading(folder / f"{name}.json"):
        ids = json.loads(read_text(folder / f"{name}.json"))
        if not isinstance(ids, list) or None in ids:
            raise ValueError("it is not a list of names")
        return name_rows(ids)


def _columns(queries: Queries) -> dict[str, npt.NDArray[Any]]:
    columns = {"constants": queries.constants, "relations": queries.relations}
    for side, answers in (("easy", queries.easy), ("hard", queries.hard)):
        columns |= {f"{side}.{name}": value for name, value in vars(answers).items()}
    return {
        column: np.ascontiguousarray(value, _dtype(column))
        for column, value in columns.items()
        if value is not None
    }


def _write(folder: Path, name: str, queries: Queries, limits: tuple[int, int]) -> dict[str, Any]:
    _check(queries, limits)
    columns = _columns(queries)
    for column, value in columns.items():
        np.save(folder / _file_name(name, column), value, allow_pickle=False)
    shapes = {column: list(value.shape) for column, value in columns.items()}
    checksums = {column: _checksum(value) for column, value in columns.items()}
    return {"pattern": str(queries.pattern), "arrays": shapes, "sha256": checksums}


def _checksum(array: npt.NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def _check_names(folder: Path, checksums: Any) -> None:
    """DatasetError if the files of names are not those that the manifest describes."""
    with _reading(folder / "manifest.json"):
        recorded = dict(checksums or {})  # none in a store of older versions
    for name, checksum in recorded.items():
        if name not in ("entities.json", "relations.json"):
            continue
        if hashlib.sha256(read_bytes(folder / name)).hexdigest() != checksum:
            raise DatasetError(
                f"{folder / name} is damaged: its checksum is not that of manifest.json; sample "
                "or import the queries again"
            )


def _map_array(file: Path, column: str, shape: Any) -> npt.NDArray[Any]:
    with _reading(file):
        check_regular(file)
        try:
            array = np.lib.format.open_memmap(file, mode="r")
        except OSError:
            raise
        except Exception as error:  # NumPy's parser of headers can fail in any way
            raise ValueError(f"it is not an array ({one_line(error)})") from error
        if array.dtype != _dtype(column) or list(array.shape) != shape:
            content = f"{array.dtype} {list(array.shape)}"
            raise ValueError(f"it holds {content} and not {_dtype(column)} {short(shape)}")
        return np.asarray(array)


def _check(queries: Queries, limits: tuple[int, int]) -> None:
    """ValueError if columns do not fit together; of the answers only the ends are read."""
    count, pattern = len(queries), queries.pattern
    if queries.constants.shape != (count, len(pattern.constants)):
        raise ValueError(f"{count} queries have constants {list(queries.constants.shape)}")
    if queries.relations.shape != (count, len(pattern.relations)):
        raise ValueError(f"{count} queries have relations {list(queries.relations.shape)}")
    for numbers, limit in zip((queries.constants, queries.relations), limits, strict=True):
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < limit:
            raise ValueError(f"a query has a number outside 0 to {limit - 1}")
    for side, answers in (("easy", queries.easy), ("hard", queries.hard)):
        ends = (len(answers), int(answers.offsets[0]), int(answers.offsets[-1]))
        if ends != (count, 0, len(answers.values)):
            raise ValueError(f"the {side} offsets do not fit the values")
        arity = len(pattern.free)
        if answers.values.shape[1:] != (() if arity == 1 else (arity,)):
            raise ValueError(f"the {side} answers are {list(answers.values.shape)} entities")
        if answers.costs is not None and len(answers.costs) != len(answers.values):
            raise ValueError(f"the {side} costs do not fit the values")


def _check_answers(queries: Queries, entities: int) -> None:
    """ValueError if answers are not entities, or if their offsets fall."""
    for side, answers in (("easy", queries.easy), ("hard", queries.hard)):
        if len(answers) and answers.counts.min() < 0:
            raise ValueError(f"the {side} offsets fall")
        values = answers.values
        if len(values) and not 0 <= values.min() <= values.max() < entities:
            raise ValueError(f"the {side} answers have a number outside 0 to {entities - 1}")


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    try:
        yield
    except DatasetError:
        raise
    except (
        OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError,
        IndexError, OverflowError, QueryError,
    ) as error:  # fmt: skip
        raise DatasetError(f"{file} is damaged or missing: {one_line(error)}") from error


def _dtype(column: str) -> np.dtype[Any]:
    return np.dtype("<i8" if column.endswith("offsets") else "<i4")


def _file_name(name: str, column: str) -> str:
    return f"{quote(name, safe='')}.{column}.npy"


def _split_name(split: str) -> str:
    if split not in SPLITS:
        raise DatasetError(f"a query store has no split {split!r}; {choices(split, SPLITS)}")
    return split
