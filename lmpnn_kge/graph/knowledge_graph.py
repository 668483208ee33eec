"""Knowledge graphs: triples over named entities and relations, in three splits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, choices, short
from lmpnn_kge.graph.database import Database
from lmpnn_kge.graph.formats import betae, libkge, named
from lmpnn_kge.graph.formats.named import MAKE_ONE
from lmpnn_kge.graph.triples import SPLITS, Triples
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.formula import Formula
from lmpnn_kge.query.negations import denials
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """Triples over numbered entities and relations, in three splits."""

    folder: Path
    name: str
    vocabulary: Vocabulary
    splits: Mapping[str, Triples]  # train, valid and test, each [n, 3]

    @classmethod
    def open(cls, folder: str | Path) -> KnowledgeGraph:
        """Open a folder in LibKGE's layout, in BetaE's, or with files of named triples."""
        folder = Path(folder)
        try:
            is_folder = folder.is_dir()
        except OSError as error:
            raise DatasetError(f"{short(str(folder))} cannot be read: {error.strerror}") from error
        if not is_folder:
            raise DatasetError(f"{folder} is not a folder{MAKE_ONE}")
        layout = next((f for f in (libkge, betae) if f.recognises(folder)), named)
        content = layout.read(folder)
        return cls(folder, content.name, content.vocabulary, content.splits)

    @classmethod
    def of(cls, graph: KnowledgeGraph | str | Path) -> KnowledgeGraph:
        """A graph as it is, or the graph of a folder."""
        return graph if isinstance(graph, KnowledgeGraph) else cls.open(graph)

    def __repr__(self) -> str:
        names = f"{self.num_entities:,} entities, {self.num_relations:,} relations"
        return f"KnowledgeGraph({short(self.name)}: {names}, {short(str(self.folder))})"

    @property
    def entity_ids(self) -> list[str]:
        return self.vocabulary.entity_ids

    @property
    def relation_ids(self) -> list[str]:
        return self.vocabulary.relation_ids

    @property
    def num_entities(self) -> int:
        return self.vocabulary.num_entities

    @property
    def num_relations(self) -> int:
        """R: without inverses."""
        return self.vocabulary.num_relations

    def triples(self, split: str) -> Triples:
        """The triples of a split, [n, 3]."""
        if split not in self.splits:
            raise DatasetError(
                f"{self.folder} has no split {split!r}; {choices(split, self.splits)}"
            )
        return self.splits[split]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all names and triples, by which a graph that has changed is recognised."""
        splits = [self.triples(split) for split in SPLITS]
        shape = [self.entity_ids, self.relation_ids, [len(triples) for triples in splits]]
        digest = hashlib.sha256(json.dumps(shape).encode())
        for triples in splits:
            digest.update(triples.astype("<i8").tobytes())
        return digest.hexdigest()

    @cached_property
    def edges(self) -> tuple[Triples, Int64s]:
        """Every triple once, [n, 3], with the number of the first split that has it, [n]."""
        splits = [self.triples(split) for split in SPLITS]
        triples = np.concatenate(splits)
        level = np.repeat(np.arange(len(SPLITS)), [len(split) for split in splits])
        s, p, o = triples.T
        keys = (s * self.num_relations + p) * self.num_entities + o
        order = np.argsort(keys, kind="stable")  # so that the earliest split stays first
        first = np.ones(len(keys), bool)
        first[1:] = np.diff(keys[order]) != 0
        return triples[order[first]], level[order[first]]

    @cached_property
    def database(self) -> Database:
        """The graph in DuckDB, which answers many questions at once."""
        return Database(*self.edges, self.num_entities, self.num_relations)

    def answer(self, formula: str | Formula, split: str = "test") -> list[str]:
        """The ids of the entities that answer a formula: exact answers, nothing is predicted.

        `train` knows the training edges, `valid` also those of valid, and `test` all edges.
        """
        return [self.entity_ids[row] for row in self.answer_rows(formula, split)]

    def answer_rows(self, formula: str | Formula, split: str = "test") -> Int64s:
        """The rows of the entities that answer a formula, in ascending order."""
        text = formula if isinstance(formula, str) else None
        pattern = Pattern(parse(formula) if isinstance(formula, str) else formula)
        constants, relations = self.vocabulary.resolve(pattern, text)
        rows = self.database.answer(pattern, constants[None], relations[None], split).of(0)
        return rows.astype(np.int64)

    def refuted_rows(self, formula: str | Formula, split: str = "train") -> Int64s:
        """The rows of entities that cannot answer a formula, whatever edges are added.

        They violate a negated condition: because currency(France, Euro) is an edge, France cannot
        answer borders(Germany, ?) & !currency(?, Euro).
        """
        by_disjunct = []
        for disjunct in normalise(parse(formula) if isinstance(formula, str) else formula):
            refuted = [self.answer_rows(denied, split) for denied in denials(disjunct)]
            by_disjunct.append(reduce(np.union1d, refuted, np.empty(0, np.int64)))
        return reduce(np.intersect1d, by_disjunct)
