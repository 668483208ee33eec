"""Knowledge graphs from folders, in the three layouts that people have.

- LibKGE dataset folders, recognised by `dataset.yaml`;
- BetaE folders, recognised by their pickles;
- `train`, `valid` and `test` as `.txt`, `.tsv`, `.csv` or `.del` files of named triples.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, choices, short
from lmpnn_kge.graph.database import Database
from lmpnn_kge.graph.formats.betae import IDS, read_triples
from lmpnn_kge.graph.formats.libkge import SPLITS, LibkgeDataset
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.formula import Formula
from lmpnn_kge.query.normal_form import denials, normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern

Ints = npt.NDArray[np.integer[Any]]
Triple = tuple[str, str, str]  # by name

#: The end of a message about something that is no graph.
MAKE_ONE = "; `lmpnn-kge split` makes a dataset folder of a file of triples"


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """Triples over numbered entities and relations, in three splits."""

    folder: Path
    name: str
    entity_ids: list[str]
    relation_ids: list[str]
    splits: Mapping[str, Ints]  # train, valid and test, each [n, 3]
    entity_labels: list[str | None] | None = None  # human-readable
    relation_labels: list[str | None] | None = None

    @classmethod
    def open(cls, folder: str | Path) -> KnowledgeGraph:
        folder = Path(folder)
        if (folder / "dataset.yaml").exists():
            return _from_libkge(folder)
        if not folder.is_dir():
            raise DatasetError(f"{folder} is not a folder{MAKE_ONE}")
        if any((folder / f"{name}.pkl").exists() for name in (*IDS, "train-queries")):
            return cls(folder, folder.resolve().name, *read_triples(folder))
        return _from_names(folder)

    def triples(self, split: str) -> npt.NDArray[np.int64]:
        """The triples of a split, [n, 3]."""
        if split not in self.splits:
            raise DatasetError(
                f"{self.folder} has no split {split!r}; {choices(split, self.splits)}"
            )
        return self.splits[split].astype(np.int64, copy=False)

    def entity_strings(self) -> list[str | None]:
        """Human-readable names in the order of the ids, None where there is none."""
        return list(self.entity_ids) if self.entity_labels is None else self.entity_labels

    def relation_strings(self) -> list[str | None]:
        return list(self.relation_ids) if self.relation_labels is None else self.relation_labels

    @property
    def num_relations(self) -> int:
        """R: without inverses."""
        return len(self.relation_ids)

    @cached_property
    def edges(self) -> tuple[Ints, Ints]:
        """Every triple once, [n, 3], with the number of the first split that has it, [n]."""
        triples = np.concatenate([self.splits[split] for split in SPLITS])
        level = np.repeat(np.arange(len(SPLITS)), [len(self.splits[split]) for split in SPLITS])
        s, p, o = triples.T
        keys = (s * self.num_relations + p) * len(self.entity_ids) + o
        order = np.argsort(keys, kind="stable")  # so that the earliest split stays first
        first = np.ones(len(keys), bool)
        first[1:] = np.diff(keys[order]) != 0
        return triples[order[first]], level[order[first]]

    @cached_property
    def database(self) -> Database:
        """The graph as DuckDB holds it, for many questions at once."""
        return Database(*self.edges, len(self.entity_ids), self.num_relations)

    def answer(self, formula: str, split: str = "test") -> list[str]:
        """The ids of the entities that answer a formula.

        train knows the training edges, valid those of valid as well, and test all.
        """
        return [self.entity_ids[row] for row in self.ask(formula, split)]

    def ask(self, formula: str | Formula, split: str = "test") -> Ints:
        """The numbers of the entities that answer a formula, in order."""
        text = formula if isinstance(formula, str) else None
        pattern = Pattern(parse(formula) if isinstance(formula, str) else formula)
        constants, relations = self.vocabulary.resolve(pattern, text)
        return self.database.answer(pattern, constants[None], relations[None], split).of(0)

    def refuted(self, formula: str, split: str = "train") -> Ints:
        """The numbers of entities that no further edge makes an answer, in order.

        What a formula denies of them is there: with currency(France, Euro), France is none to
        borders(Germany, ?) & !currency(?, Euro).
        """
        none = np.empty(0, np.int64)
        by_disjunct = [
            reduce(np.union1d, (self.ask(denied, split) for denied in denials(disjunct)), none)
            for disjunct in normalise(parse(formula))
        ]
        return reduce(np.intersect1d, by_disjunct)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names of the graph."""
        return Vocabulary(
            self.entity_ids, self.relation_ids, self.entity_labels, self.relation_labels
        )


#: What names a checkpoint and has triples to train on: a folder, or all that is in it.
Graph = LibkgeDataset | KnowledgeGraph


def open_graph(folder: str | Path) -> Graph:
    """The graph of a folder; that of LibKGE reads its files when they are asked for."""
    if (Path(folder) / "dataset.yaml").exists():
        return LibkgeDataset.open(folder)
    return KnowledgeGraph.open(folder)


def fingerprint(graph: Graph) -> str:
    """A hash of all names and triples, by which a graph that has changed since is known."""
    splits = [graph.triples(split) for split in SPLITS]
    shape = [graph.entity_ids, graph.relation_ids, [len(triples) for triples in splits]]
    digest = hashlib.sha256(json.dumps(shape).encode())
    for triples in splits:
        digest.update(triples.astype("<i8").tobytes())
    return digest.hexdigest()


def _from_libkge(folder: Path) -> KnowledgeGraph:
    dataset = LibkgeDataset.open(folder)
    return KnowledgeGraph(
        folder,
        dataset.name,
        dataset.entity_ids,
        dataset.relation_ids,
        {split: dataset.triples(split) for split in SPLITS},
        dataset.entity_strings(),
        dataset.relation_strings(),
    )


def _from_names(folder: Path) -> KnowledgeGraph:
    """Names get their numbers by first occurrence, in train, then valid, then test."""
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    splits = {
        split: _read_names(_split_file(folder, split), entities, relations) for split in SPLITS
    }
    name = folder.resolve().name
    return KnowledgeGraph(folder, name, list(entities), list(relations), splits)


def _split_file(folder: Path, split: str) -> Path:
    for suffix in (".txt", ".tsv", ".csv", ".del"):
        if (folder / f"{split}{suffix}").is_file():
            return folder / f"{split}{suffix}"
    raise DatasetError(
        f"{folder} is no dataset folder: it has neither dataset.yaml nor {split}.txt, .tsv or "
        f".csv{MAKE_ONE}"
    )


def _read_names(file: Path, entities: dict[str, int], relations: dict[str, int]) -> Ints:
    rows = [
        (
            entities.setdefault(head, len(entities)),
            relations.setdefault(relation, len(relations)),
            entities.setdefault(tail, len(entities)),
        )
        for head, relation, tail in named_triples(file)
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def named_triples(file: Path) -> Iterator[Triple]:
    """The lines of a file: head, relation and tail, between commas in a `.csv`, else tabs."""
    commas = file.suffix == ".csv"
    try:
        with file.open(encoding="utf-8-sig") as lines:  # some editors begin with a mark
            rows: Iterable[list[str]] = (line.rstrip("\n").split("\t") for line in lines)
            if commas:
                rows = csv.reader(lines, skipinitialspace=True, strict=True)
            for number, parts in enumerate(rows, start=1):
                if parts in ([], [""]):
                    continue
                broken = commas and any(sign in part for part in parts for sign in "\t\n")
                if len(parts) != 3 or not all(parts) or broken:
                    raise DatasetError(
                        f"{file} line {number} must be a head, a relation and a tail between "
                        f"{'commas' if commas else 'tabs'}: {short(repr(parts))}"
                    )
                yield parts[0], parts[1], parts[2]
    except UnicodeDecodeError as error:
        raise DatasetError(f"{file} is not UTF-8: {error}") from error
    except csv.Error as error:
        raise DatasetError(f"{file} is not a readable .csv file: {error}") from error
    except OSError as error:
        raise DatasetError(f"{file} cannot be read: {error.strerror}") from error
