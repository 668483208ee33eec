"""Knowledge graphs: triples over named entities and relations, in three splits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, choices, short
from lmpnn_kge.graph.answers import Mask
from lmpnn_kge.graph.database import Database, level_of
from lmpnn_kge.graph.formats import betae, libkge, named
from lmpnn_kge.graph.formats.named import MAKE_ONE
from lmpnn_kge.graph.triples import SPLITS, Triples
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.once import once
from lmpnn_kge.query.explain import Witness, explain
from lmpnn_kge.query.formula import Formula
from lmpnn_kge.query.negations import denials
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.query.reason import Reason

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

    @once
    def fingerprint(self) -> str:
        """A hash of all names and triples, by which a graph that has changed is recognised."""
        splits = [self.triples(split) for split in SPLITS]
        shape = [self.entity_ids, self.relation_ids, [len(triples) for triples in splits]]
        digest = hashlib.sha256(json.dumps(shape).encode())
        for triples in splits:
            digest.update(triples.astype("<i8").tobytes())
        return digest.hexdigest()

    @once
    def edges(self) -> tuple[Triples, Int64s]:
        """Every triple once, [n, 3], with the number of the first split that has it, [n]."""
        splits = [self.triples(split) for split in SPLITS]
        triples = np.concatenate(splits)
        level = np.repeat(np.arange(len(SPLITS)), [len(split) for split in splits])
        keys = self._keys(triples)
        order = np.argsort(keys, kind="stable")  # so that the earliest split stays first
        first = np.ones(len(keys), bool)
        first[1:] = np.diff(keys[order]) != 0
        return triples[order[first]], level[order[first]]

    def holds(self, triples: Triples, split: str = "train") -> npt.NDArray[np.bool_]:
        """Whether a split knows each of the triples [n, 3]: its own and those of earlier splits."""
        keys, levels = self._sorted_keys
        wanted = self._keys(triples)
        position = np.searchsorted(keys, wanted).clip(max=max(0, len(keys) - 1))
        if not len(keys):
            return np.zeros(len(triples), bool)
        return (keys[position] == wanted) & (levels[position] <= level_of(split))

    @once
    def _sorted_keys(self) -> tuple[Int64s, Int64s]:
        triples, levels = self.edges
        return self._keys(triples), levels

    def _keys(self, triples: Triples) -> Int64s:
        """A number for each triple, in the order of head, relation and tail."""
        s, p, o = triples.T
        return (s * self.num_relations + p) * self.num_entities + o

    @once
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
        pattern, constants, relations = self._resolve(formula)
        rows = self.database.answer(pattern, constants[None], relations[None], split).of(0)
        return rows.astype(np.int64)

    def refuted_rows(self, formula: str | Formula, split: str = "train") -> Int64s:
        """The rows of entities that cannot answer a formula, whatever edges are added.

        They violate a negated condition: because currency(France, Euro) is an edge, France cannot
        answer borders(Germany, ?) & !currency(?, Euro).
        """
        pattern, constants, relations = self._resolve(formula)
        return np.flatnonzero(self.refuted(pattern, constants[None], relations[None], split))

    def refuted(
        self, pattern: Pattern, constants: Int64s, relations: Int64s, split: str = "train"
    ) -> Mask:
        """`refuted_rows` for queries [n, c] and [n, r] of a pattern, as a mask [n, E]."""
        refuted = np.ones((len(constants), self.num_entities), bool)
        for disjunct in normalise(pattern.formula):
            by_disjunct = np.zeros_like(refuted)
            for denied in denials(disjunct):
                part, entities, edges = pattern.part(denied)
                rows = constants[:, entities], relations[:, edges]
                by_disjunct |= self.database.answer(part, *rows, split).mask(self.num_entities)
            refuted &= by_disjunct
        return refuted

    def witnesses(
        self,
        formula: str | Formula,
        rows: Sequence[int] | Int64s,
        split: str = "train",
        limit: int = 1,
    ) -> list[list[Witness]]:
        """For each entity, up to `limit` assignments of variables by which it answers a formula.

        All their edges are edges of the split, and none of the edges that the formula denies is. An
        entity that does not answer the formula has none.
        """
        pattern, constants, relations = self._resolve(formula)
        answers = np.asarray(rows, np.int64)
        return self.database.witnesses(
            pattern,
            np.broadcast_to(constants, (len(answers), len(constants))),
            np.broadcast_to(relations, (len(answers), len(relations))),
            answers,
            split,
            limit,
        )

    def explain(
        self, formula: str | Formula, entity: str, split: str = "train", limit: int = 1
    ) -> list[Reason]:
        """Why an entity (an id or a label) answers a formula, by known edges only."""
        row = self.vocabulary.entity(entity)
        (witnesses,) = self.witnesses(formula, [row], split, limit)
        return explain(witnesses, self.vocabulary, lambda edges: self.holds(edges, split))

    def _resolve(self, formula: str | Formula) -> tuple[Pattern, Int64s, Int64s]:
        """A formula as a pattern, with the rows of its constants [c] and relations [r]."""
        text = formula if isinstance(formula, str) else None
        pattern = Pattern(parse(formula) if isinstance(formula, str) else formula)
        return pattern, *self.vocabulary.resolve(pattern, text)
