"""Query stores: folders of memory-mapped columns beside a manifest, written whole or not at all.

    manifest.json     what there is: graph, splits, patterns, the shape of every array, provenance
    entities.json     the names of the entities, in the order of their numbers; so relations.json
    test/2p.constants.npy, .relations.npy, .easy.offsets.npy, .easy.values.npy, …

Relations are numbered over [0, 2R): number r + R is the inverse of r, so an atom over it is the
atom over r with head and tail exchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, QueryError, choices, short
from lmpnn_kge.files import UNFINISHED, whole_folder
from lmpnn_kge.graph.answers import Answers, Int32s
from lmpnn_kge.graph.formats.libkge import SPLITS, name_rows
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.formula import And, Atom, Constant, Equal, Formula, Not, Or, Term
from lmpnn_kge.query.patterns import ordered, parse_pattern

FORMAT = 1
KIND = "lmpnn-kge query store"


@dataclass(frozen=True, eq=False)
class QueryStore:
    """The queries of a graph, by split and by the name of their pattern."""

    graph: str
    entity_ids: list[str]
    relation_ids: list[str]
    splits: Mapping[str, Mapping[str, Queries]]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None  # None where it is not written yet

    @classmethod
    def open(cls, folder: str | Path) -> QueryStore:
        """Read the manifest and the names; the columns are mapped when they are asked for."""
        folder = Path(folder)
        if folder.name.endswith(UNFINISHED):
            raise DatasetError(f"{folder} was left by a run that was stopped; it is no query store")
        manifest = _manifest(folder)
        if manifest.get("format") != FORMAT:
            raise DatasetError(
                f"{folder} is a query store of format {short(manifest.get('format'))}, but this "
                f"version reads format {FORMAT}; make it again or update lmpnn-kge"
            )
        with _reading(folder / "manifest.json"):
            graph, provenance = manifest["graph"], manifest["provenance"]
            if not isinstance(graph, str) or not isinstance(provenance, dict):
                raise TypeError("it names no graph")
        entities, relations = _read_ids(folder, "entities"), _read_ids(folder, "relations")
        limits = len(entities), 2 * len(relations)
        with _reading(folder / "manifest.json"):
            splits = {
                split: _Split(folder / _split_name(split), dict(entries), limits)
                for split, entries in manifest["splits"].items()
            }
        store = cls(graph, entities, relations, splits, provenance, folder)
        for found in splits.values():
            list(found.values())  # to map the files is to check them
        return store

    def names(self, entities: Int32s) -> list[str]:
        """The names of answers."""
        if len(entities) and not 0 <= entities.min() <= entities.max() < len(self.entity_ids):
            raise DatasetError(f"{self.folder} is damaged: it has answers that are no entities")
        return [self.entity_ids[entity] for entity in entities]

    def question(self, queries: Queries, row: int) -> Formula:
        """One query as a formula over names."""
        inverse, relations = np.divmod(queries.relations[row], len(self.relation_ids))
        names = [self.relation_ids[relation] for relation in relations]
        constants = [Constant(self.entity_ids[entity]) for entity in queries.constants[row]]
        return _fill(
            queries.pattern.formula,
            dict(zip(queries.pattern.constants, constants, strict=True)),
            dict(zip(queries.pattern.relations, zip(names, inverse, strict=True), strict=True)),
        )


class _Split(Mapping[str, Queries]):
    """Maps the files of a pattern when it is asked for, so that few are open at a time."""

    def __init__(self, folder: Path, entries: dict[str, Any], limits: tuple[int, int]):
        self.folder = folder
        self.entries = entries
        self.limits = limits  # of the numbers of entities and of relations

    def __getitem__(self, name: str) -> Queries:
        entry = self.entries[name]
        with _reading(self.folder.parent / "manifest.json"):
            pattern, shapes = parse_pattern(entry["pattern"]), dict(entry["arrays"])
        arrays = {
            column: _map_array(self.folder / _file_name(name, column), column, shape)
            for column, shape in shapes.items()
        }
        with _reading(self.folder / f"{quote(name, safe='')}.*.npy"):
            easy, hard = (
                Answers(arrays[f"{s}.offsets"], arrays[f"{s}.values"], arrays.get(f"{s}.costs"))
                for s in ("easy", "hard")
            )
            queries = Queries(pattern, arrays["constants"], arrays["relations"], easy, hard)
            _check(queries, self.limits)
        return queries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def write_store(folder: str | Path, store: QueryStore) -> QueryStore:
    """Write a store to a folder, in the place of the store that may be there, and open it."""
    folder = Path(folder)
    with whole_folder(folder, may_replace=is_store) as aside:
        splits = {}
        limits = len(store.entity_ids), 2 * len(store.relation_ids)
        for split in sorted(map(_split_name, store.splits), key=SPLITS.index):
            (aside / split).mkdir()
            found = store.splits[split]
            splits[split] = {
                name: _write(aside / split, name, found[name], limits) for name in ordered(found)
            }
        for name, ids in (("entities", store.entity_ids), ("relations", store.relation_ids)):
            (aside / f"{name}.json").write_text(json.dumps(name_rows(list(ids)), indent=0) + "\n")
        manifest = {
            "kind": KIND,
            "format": FORMAT,
            "graph": store.graph,
            "splits": splits,
            "provenance": dict(store.provenance),
        }
        # Last, for a folder without it is no store.
        (aside / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
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
            raise DatasetError(f"{folder} is no query store: it has no manifest.json")
        content = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise ValueError("it is of something else")
        return content


def _read_ids(folder: Path, name: str) -> list[str]:
    with _reading(folder / f"{name}.json"):
        ids = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        if not isinstance(ids, list) or None in ids:
            raise ValueError("it is no list of names")
        return name_rows(ids)


def _columns(queries: Queries) -> dict[str, npt.NDArray[Any]]:
    columns = {"constants": queries.constants, "relations": queries.relations}
    for side, answers in (("easy", queries.easy), ("hard", queries.hard)):
        columns |= {f"{side}.{name}": value for name, value in vars(answers).items()}
    found = {column: value for column, value in columns.items() if value is not None}
    return {c: np.ascontiguousarray(value, _dtype(c)) for c, value in found.items()}


def _write(folder: Path, name: str, queries: Queries, limits: tuple[int, int]) -> dict[str, Any]:
    _check(queries, limits)
    columns = _columns(queries)
    for column, value in columns.items():
        np.save(folder / _file_name(name, column), value, allow_pickle=False)
    shapes = {column: list(value.shape) for column, value in columns.items()}
    return {"pattern": str(queries.pattern), "arrays": shapes}


def _map_array(file: Path, column: str, shape: Any) -> npt.NDArray[Any]:
    with _reading(file):
        array = np.load(file, mmap_mode="r", allow_pickle=False)
        if array.dtype != _dtype(column) or list(array.shape) != shape:
            found = f"{array.dtype} {list(array.shape)}"
            raise ValueError(f"it holds {found} and not {_dtype(column)} {short(shape)}")
        return np.asarray(array)


def _check(queries: Queries, limits: tuple[int, int]) -> None:
    """ValueError where columns do not fit together; of answers only the ends are looked at."""
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
        if answers.costs is not None and answers.costs.shape != answers.values.shape:
            raise ValueError(f"the {side} costs do not fit the values")


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    try:
        yield
    except DatasetError:
        raise
    except (
        OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError,
        IndexError, QueryError,
    ) as error:  # fmt: skip
        reason = short(" ".join(str(error).split()) or type(error).__name__)
        raise DatasetError(f"{file} is damaged or missing: {reason}") from error


def _dtype(column: str) -> np.dtype[Any]:
    return np.dtype("<i8" if column.endswith("offsets") else "<i4")


def _file_name(name: str, column: str) -> str:
    return f"{quote(name, safe='')}.{column}.npy"


def _split_name(split: str) -> str:
    if split not in SPLITS:
        raise DatasetError(f"a query store has no split {split!r}; {choices(split, SPLITS)}")
    return split


def _fill(
    formula: Formula, constants: Mapping[str, Term], relations: Mapping[str, tuple[str, Any]]
) -> Formula:
    def term(old: Term) -> Term:
        return constants[old.name] if isinstance(old, Constant) else old

    match formula:
        case Atom(place, head, tail):
            name, inverse = relations[place]
            first, second = (tail, head) if inverse else (head, tail)
            return Atom(name, term(first), term(second))
        case Equal(left, right):
            return Equal(term(left), term(right))
        case Not(body):
            return Not(_fill(body, constants, relations))
        case And(parts):
            return And(tuple(_fill(part, constants, relations) for part in parts))
        case Or(parts):
            return Or(tuple(_fill(part, constants, relations) for part in parts))
