"""BetaE's query files, in and out without loss, and those of the hard sets.

BetaE writes a query as nested tuples of numbers; `STRUCTURES` has their shapes: e is an entity, r a
relation, n a negation (-2) and u a union (-1). Read from left to right, the numbers are the
constants and relations of our pattern, in order.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, examples, short
from lmpnn_kge.files import atomic_folder
from lmpnn_kge.graph.answers import Answers, Int32s
from lmpnn_kge.graph.formats.betae import IDS, from_betae, read_vocabulary, to_betae
from lmpnn_kge.graph.formats.safe_pickle import are, load, try_out, uncollected
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.published import KEY, recognise
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.patterns import BETAE, NAMED, parse_pattern

Ints = npt.NDArray[np.int64]

_1P, _2P, _1N = ("e", ("r",)), ("e", ("r", "r")), ("e", ("r", "n"))


#: The shapes of the 14 types, and of the two more that the hard sets have.
STRUCTURES: dict[str, tuple[Any, ...]] = {
    "1p": _1P,
    "2p": _2P,
    "3p": ("e", ("r", "r", "r")),
    "2i": (_1P, _1P),
    "3i": (_1P, _1P, _1P),
    "pi": (_2P, _1P),
    "ip": ((_1P, _1P), ("r",)),
    "2u": (_1P, _1P, ("u",)),
    "up": ((_1P, _1P, ("u",)), ("r",)),
    "2in": (_1P, _1N),
    "3in": (_1P, _1P, _1N),
    "inp": ((_1P, _1N), ("r",)),
    "pin": (_2P, _1N),
    "pni": (("e", ("r", "r", "n")), _1P),
    "4p": ("e", ("r", "r", "r", "r")),
    "4i": (_1P, _1P, _1P, _1P),
}

#: Unions that BetaE writes once more, by De Morgan.
DE_MORGAN = {((_1N, _1N), ("n",)): "2u-DM", ((_1N, _1N), ("n", "r")): "up-DM"}

_NAMES = {structure: name for name, structure in STRUCTURES.items()} | DE_MORGAN

_MARKS = {"n": -2, "u": -1}

_ANSWERS = {
    "train": ("answers",),
    "valid": ("easy-answers", "hard-answers"),
    "test": ("easy-answers", "hard-answers"),
}


def import_betae(folder: str | Path) -> tuple[QueryStore, list[str]]:
    """The queries of a BetaE folder, and notes on what was skipped."""
    folder = Path(folder)
    splits = [split for split in SPLITS if (folder / f"{split}-queries.pkl").is_file()]
    if not splits:
        raise DatasetError(
            f"{folder} is not a BetaE folder: it has neither train-, valid- nor test-queries.pkl"
        )
    names = [f"{s}-{name}" for s in splits for name in ("queries", *_ANSWERS[s])]
    try_out(folder, [*IDS, *names])
    vocabulary = read_vocabulary(folder)
    limits = vocabulary.num_entities, vocabulary.num_relations
    notes: list[str] = []
    queries = {split: _read_split(folder, split, limits, notes) for split in splits}
    name = folder.resolve().name
    published, more = recognise(folder, names)
    provenance = {"imported": name, KEY: published}
    return QueryStore(name, vocabulary, queries, provenance), [*notes, *more]


def export_betae(
    store: QueryStore, folder: str | Path, graph: KnowledgeGraph | None = None
) -> list[str]:
    """Write a store, and a graph's triples, as a BetaE folder; return notes on what was skipped."""
    notes: list[str] = []
    names = store.vocabulary
    signed = [sign + name for name in names.relation_ids for sign in "+-"]
    with atomic_folder(Path(folder), or_same=True) as aside:
        for role, ids in (("ent", names.entity_ids), ("rel", signed)):
            _dump(aside / f"id2{role}.pkl", dict(enumerate(ids)))
            _dump(aside / f"{role}2id.pkl", {id_: number for number, id_ in enumerate(ids)})
        stats = f"numentity: {names.num_entities}\nnumrelations: {len(signed)}\n"
        (aside / "stats.txt").write_text(stats)
        for split in store.splits:
            _write_split(aside, store, split, notes)
        if graph is not None:
            _write_triples(aside, store, graph)
    return notes


def _dump(file: Path, content: Any) -> None:
    with file.open("wb") as stream:
        pickle.dump(content, stream, protocol=4)  # not the default, which may change


@uncollected()
def _read_split(
    folder: Path, split: str, limits: tuple[int, int], notes: list[str]
) -> dict[str, Queries]:
    """The queries of a split in the order of the dict of answers, because sets have no order."""
    source = folder / f"{split}-queries.pkl"
    listed = load(source)
    files = [folder / f"{split}-{name}.pkl" for name in _ANSWERS[split]]
    answers = {file: load(file) for file in files}
    places = {query: place for place, query in enumerate(answers[files[-1]])}
    read: dict[str, Queries] = {}
    unasked = len(places)
    for structure, found in listed.items():
        if not isinstance(found, set | frozenset):
            raise DatasetError(f"{source} must hold sets of queries, not {short(found)}")
        unasked -= len(found)
        name = _NAMES.get(structure)
        if name not in STRUCTURES:
            notes.append(f"{split}: skipped {len(found):,} {name or short(structure)}")
            continue
        if missing := found - places.keys():
            raise DatasetError(f"{files[-1]} has no answers to {len(missing)} {name} queries")
        queries = sorted(found, key=places.__getitem__)
        constants, relations = _columns(source, queries, name, limits)
        sides = [
            _answers(file, [known.get(query, frozenset()) for query in queries], limits[0])
            for file, known in answers.items()
        ]
        hard = sides[1] if len(sides) > 1 else Answers.none(len(queries))
        pattern = parse_pattern(NAMED[name])
        read[name] = Queries(pattern, constants, relations, sides[0], hard)
    if unasked > 0:
        notes.append(f"{split}: skipped the answers to {unasked:,} queries that are not listed")
    return read


def _columns(
    file: Path, queries: list[Any], name: str, limits: tuple[int, int]
) -> tuple[Int32s, Int32s]:
    """The constants [n, c] and relations [n, r] of queries, in our numbering."""
    entities, relations = limits
    columns: dict[str, list[Ints]] = {"e": [], "r": [], "n": [], "u": []}
    try:
        for mark, column in _leaves(STRUCTURES[name], queries):
            columns[mark].append(np.array(column, np.int64))
        if any((column != _MARKS[mark]).any() for mark in _MARKS for column in columns[mark]):
            raise ValueError("unexpected markers for negation or union")
        constants, signed = (np.stack(columns[mark], axis=1) for mark in "er")
        for found, limit in ((constants, entities), (signed, 2 * relations)):
            if wrong := int(((found < 0) | (found >= limit)).any(axis=1).sum()):
                raise ValueError(f"{wrong} have an id outside 0 to {limit - 1}")
    except (ValueError, OverflowError) as error:
        raise DatasetError(f"{file}: cannot read the {name} queries: {error}") from error
    return constants.astype(np.int32), from_betae(signed, relations).astype(np.int32)


def _leaves(structure: Any, column: Sequence[Any]) -> Iterator[tuple[str, Sequence[int]]]:
    """The numbers at each position of a structure, taken from many queries at once."""
    if isinstance(structure, str):
        if not are(int, column):
            raise ValueError("they hold something other than numbers")
        yield structure, column
        return
    if not are(tuple, column) or not set(map(len, column)) <= {len(structure)}:
        raise ValueError("they have an unexpected shape")
    parts = zip(*column, strict=True) if column else [()] * len(structure)
    for part, inner in zip(structure, parts, strict=True):
        yield from _leaves(part, inner)


def _answers(file: Path, sets: list[Any], entities: int) -> Answers:
    if not set(map(type, sets)) <= {set, frozenset} or not are(int, chain.from_iterable(sets)):
        raise DatasetError(f"{file} must hold sets of numbers")
    counts = np.fromiter(map(len, sets), np.int64, len(sets))
    try:
        values = np.fromiter(chain.from_iterable(sets), np.int64, counts.sum())
    except OverflowError:
        values = np.array([-1])
    if wrong := int(((values < 0) | (values >= entities)).sum()):
        raise DatasetError(f"{file}: {wrong} answers are not among 0 to {entities - 1}")
    # Sorting numbers that are unique across queries sorts the answers of each.
    values += np.repeat(np.arange(len(sets)) * entities, counts)
    values.sort()
    return Answers(np.append(0, np.cumsum(counts)), (values % entities).astype(np.int32))


@uncollected()
def _write_split(folder: Path, store: QueryStore, split: str, notes: list[str]) -> None:
    # As in BetaE's files: programs ask them for types and queries that they may lack.
    listed: dict[Any, set[Any]] = defaultdict(set)
    answers: dict[str, dict[Any, set[int]]] = {name: defaultdict(set) for name in _ANSWERS[split]}
    for name, queries in store.splits[split].items():
        if name not in STRUCTURES or queries.pattern != parse_pattern(NAMED[name]):
            notes.append(f"{split}: skipped {len(queries):,} {name}, which is not a BetaE type")
            continue
        if name not in BETAE:
            notes.append(f"{split}: {name} is a type of the hard sets, not of BetaE's own files")
        if split == "train" and len(queries.hard.values):
            raise DatasetError(
                f"train {name} has hard answers, which BetaE's training files cannot hold"
            )
        signed = to_betae(queries.relations.astype(np.int64), store.vocabulary.num_relations)
        places = {"e": iter(queries.constants.T), "r": iter(signed.T)}
        rows = list(_nest(STRUCTURES[name], places, len(queries)))
        listed[STRUCTURES[name]] = set(rows)
        if twice := len(rows) - len(set(rows)):
            notes.append(f"{split}: skipped {twice:,} {name} that occur a second time")
        for side, found in zip((queries.easy, queries.hard), answers.values(), strict=False):
            values, ends = side.values.tolist(), side.offsets.tolist()
            for query, start, end in zip(rows, ends, ends[1:], strict=False):
                found[query] = set(values[start:end])
    _dump(folder / f"{split}-queries.pkl", listed)
    for name, found in answers.items():
        _dump(folder / f"{split}-{name}.pkl", found)


def _nest(structure: Any, places: Mapping[str, Iterator[Any]], count: int) -> Iterable[Any]:
    """Many queries of a structure at once, from one column per position."""
    if structure in _MARKS:
        return [_MARKS[structure]] * count
    if isinstance(structure, str):
        column: list[int] = next(places[structure]).tolist()
        return column
    return zip(*[_nest(part, places, count) for part in structure], strict=True)


def _write_triples(folder: Path, store: QueryStore, graph: KnowledgeGraph) -> None:
    rows = graph.vocabulary.rows_in(store.vocabulary)
    for ids, numbers in ((graph.entity_ids, rows.entities), (graph.relation_ids, rows.relations)):
        if unknown := [ids[row] for row in (numbers < 0).nonzero()[0]]:
            raise DatasetError(
                f"{graph.folder} has names that the queries' graph lacks: {examples(unknown)}"
            )
    for split in SPLITS:
        head, relation, tail = rows.of(graph.triples(split)).T
        forward, backward = 2 * relation, 2 * relation + 1
        both = np.stack([head, forward, tail, tail, backward, head], axis=1).reshape(-1, 3)
        np.savetxt(folder / f"{split}.txt", both, fmt="%d", delimiter="\t")
