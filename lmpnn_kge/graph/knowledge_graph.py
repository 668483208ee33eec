"""Knowledge graphs: triples over named entities and relations, in three splits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, QueryError, choices, short
from lmpnn_kge.files import atomic_folder
from lmpnn_kge.graph.answers import MAX_TUPLES, Mask, TupleRows
from lmpnn_kge.graph.database import Database, level_of
from lmpnn_kge.graph.describe import describe_graph
from lmpnn_kge.graph.engine import DEFAULT, EngineOptions
from lmpnn_kge.graph.engines import open_engine
from lmpnn_kge.graph.folders import read_folder
from lmpnn_kge.graph.formats import cache
from lmpnn_kge.graph.formats.content import Content
from lmpnn_kge.graph.formats.labels import Labelled, read_labels
from lmpnn_kge.graph.formats.libkge_write import write_dataset
from lmpnn_kge.graph.formats.named import MAKE_ONE
from lmpnn_kge.graph.formats.reading import read_options
from lmpnn_kge.graph.formats.sources import read_source
from lmpnn_kge.graph.formats.streams import STDIN
from lmpnn_kge.graph.frames import triples_frame, tuples_frame
from lmpnn_kge.graph.hold_out import SHARE, hold_out
from lmpnn_kge.graph.profile import GraphProfile
from lmpnn_kge.graph.triples import SPLITS, Triples
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.explain import Witness, explain
from lmpnn_kge.query.formula import Atom, Formula, Variable
from lmpnn_kge.query.negations import denials
from lmpnn_kge.query.parser import Query, check_arity, check_single, read_query
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.query.reason import Reason
from lmpnn_kge.work.once import once

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """Triples over numbered entities and relations, in three splits."""

    folder: Path
    name: str
    vocabulary: Vocabulary
    splits: Mapping[str, Triples]  # train, valid and test, each [n, 3]
    notes: tuple[str, ...] = ()  # what was left out while it was read
    engine: EngineOptions = DEFAULT  # for exact answers

    @classmethod
    def open(cls, path: str | Path, **options: Any) -> KnowledgeGraph:
        """Open a folder in LibKGE's layout, in BetaE's or of named triples, or a file of triples.

        A file is read as by `from_triples`, which takes the same options.
        """
        path = Path(path)
        try:
            is_folder = path.is_dir()
            exists = is_folder or path.exists() or str(path) == STDIN
        except OSError as error:
            raise DatasetError(f"{short(str(path))} cannot be read: {error.strerror}") from error
        if not exists:
            raise DatasetError(f"{path} is neither a folder nor a file of triples{MAKE_ONE}")
        if not is_folder:
            return cls.from_triples(path, **options)
        if options:
            raise DatasetError(f"{path} is a folder; {', '.join(options)} are for files of triples")
        content = read_folder(path)
        return cls(path, content.name, content.vocabulary, content.splits)

    @classmethod
    def of(cls, graph: KnowledgeGraph | str | Path) -> KnowledgeGraph:
        """A graph as it is, or the graph of a folder or a file."""
        return graph if isinstance(graph, KnowledgeGraph) else cls.open(graph)

    @classmethod
    def from_triples(
        cls,
        source: Any,
        *,
        labels: str | Path | Mapping[str, str] | None = None,
        valid: float = SHARE,
        test: float = SHARE,
        seed: int = 0,
        name: str | None = None,
        **options: Any,
    ) -> KnowledgeGraph:
        """A graph from a DataFrame, an array or an iterable of triples, or a path or several.

        valid and test are the shares of each relation's triples that are held out, as far as every
        entity keeps a training triple; shares of 0 train on everything. labels is a file, or a
        dictionary from ids. The other options are the fields of `ReadOptions`: columns, header,
        delimiter, quoted, relation, format, language and skip_bad.
        """
        read = read_source(source, read_options(options))
        numbered = read.numbered.sorted()
        splits = hold_out(numbered, str(seed), valid, test)
        names = Vocabulary(numbered.entities, numbered.relations)
        names = read.labelled.of(names)
        if isinstance(labels, Mapping):
            names = Labelled(labels).of(names)
        elif labels is not None:
            names = read_labels(labels, names).of(names)
        folder = Path(source) if isinstance(source, str | Path) else Path()
        return cls(folder, name or read.name, names, splits, read.notes)

    def answered_by(self, engine: EngineOptions) -> KnowledgeGraph:
        """The same graph with other options for the engine that gives exact answers."""
        return replace(self, engine=engine)

    def save(self, folder: str | Path) -> KnowledgeGraph:
        """Write the graph as a LibKGE dataset folder, and return the graph of that folder.

        A folder that already holds exactly this graph is left as it is.
        """
        folder = Path(folder)
        splits = {split: self.triples(split) for split in SPLITS}
        with atomic_folder(folder, or_same=True) as aside:
            names = write_dataset(aside, self.name, self.vocabulary, splits)
        cache.store(folder, Content(self.name, names, splits))
        return replace(self, folder=folder, vocabulary=names, splits=splits)

    def triples_frame(self, split: str | None = None) -> Any:
        """The triples of a split, or of all splits, as a DataFrame of names (needs pandas)."""
        splits = SPLITS if split is None else [split]
        return triples_frame(self.vocabulary, {name: self.triples(name) for name in splits})

    def __repr__(self) -> str:
        names = f"{self.num_entities:,} entities, {self.num_relations:,} relations"
        return f"KnowledgeGraph({short(self.name)}: {names}, {short(str(self.folder))})"

    def describe(self) -> GraphProfile:
        """Count relations, degrees, components and leaks; `str` shows it, `to_json` has it all."""
        return describe_graph(self.name, self.vocabulary, self.splits, self.edges)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.describe()._repr_html_()

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
        """The graph in an engine, which answers many questions at once."""
        entities = self.num_entities
        engine = open_engine(self.engine, *self.edges, entities, self.num_relations)
        return Database(engine, entities)

    def answer(
        self, formula: str | Formula, split: str = "test", limit: int | None = None
    ) -> list[Any]:
        """The ids of the entities that answer a formula: exact answers, nothing is predicted.

        The answers of a formula with ?1, ?2, … are tuples of ids. The formula may be a SPARQL
        query; its LIMIT is applied. limit keeps at most that many answers. `train` knows the
        training edges, `valid` also those of valid, and `test` all edges.
        """
        ids, rows = self.entity_ids, self.answer_tuples(formula, split, limit).rows
        if rows.shape[1] == 1:
            return [ids[row] for row in rows[:, 0]]
        return [tuple(ids[row] for row in several) for several in rows.tolist()]

    def answer_frame(self, formula: str | Formula, split: str = "test") -> Any:
        """The same answers as a DataFrame of ids and labels (needs pandas)."""
        return tuples_frame(self.vocabulary, self.answer_tuples(formula, split).rows)

    def answer_rows(self, formula: str | Formula, split: str = "test") -> Int64s:
        """The rows of the entities that answer a formula with one `?`, in ascending order."""
        query = read_query(formula)
        check_single(query.formula)
        return self._answers(query, split, None).rows[:, 0]

    def answer_tuples(
        self, formula: str | Formula, split: str = "test", limit: int | None = None
    ) -> TupleRows:
        """The rows of the first `limit` tuples that answer a formula; without it, of all.

        QueryError if these are more than MAX_TUPLES.
        """
        return self._answers(read_query(formula), split, limit)

    def _answers(self, query: Query, split: str, limit: int | None) -> TupleRows:
        if limit is not None and limit < 1:
            raise QueryError(f"limit must be at least 1, not {limit}")
        pattern, constants, relations = self._resolve(query)
        most = limit or (MAX_TUPLES if len(pattern.free) > 1 else self.num_entities)
        asked = min(most + 1, query.limit or most + 1)  # one more shows that there are others
        found = self.database.answer(pattern, constants[None], relations[None], split, asked).of(0)
        rows = found.reshape(len(found), len(pattern.free))[:asked].astype(np.int64)
        if limit is None and len(rows) > most:
            raise QueryError(f"the formula has more than {most:,} answers; give a limit")
        return TupleRows(rows[:most], complete=len(rows) <= most)

    def with_ids(self, formula: str | Formula) -> Formula:
        """A formula or SPARQL query with the ids of all its names, some of which may be labels."""
        return self.vocabulary.with_ids(*self._resolve(read_query(formula)))

    def refuted_rows(self, formula: str | Formula, split: str = "train") -> Int64s:
        """The rows of entities that cannot answer a formula, whatever edges are added.

        They violate a negated condition: because currency(France, Euro) is an edge, France cannot
        answer borders(Germany, ?) & !currency(?, Euro).
        """
        pattern, constants, relations = self._resolve(read_query(formula))
        return np.flatnonzero(self.refuted(pattern, constants[None], relations[None], split))

    def refuted(
        self, pattern: Pattern, constants: Int64s, relations: Int64s, split: str = "train"
    ) -> Mask:
        """`refuted_rows` for queries [n, c] and [n, r] of a pattern, as a mask [n, E]."""
        refuted = np.ones((len(constants), self.num_entities), bool)
        for disjunct in pattern.disjuncts:
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
        rows: Sequence[int] | Sequence[Sequence[int]] | Int64s,
        split: str = "train",
        limit: int = 1,
    ) -> list[list[Witness]]:
        """For each answer, up to `limit` assignments of variables by which it answers a formula.

        Answers are rows of entities [n], or of tuples [n, k]. All edges are edges of the split, and
        none of the edges that the formula denies is. What does not answer the formula has none.
        """
        pattern, constants, relations = self._resolve(read_query(formula))
        answers = np.asarray(rows, np.int64)
        return self.database.witnesses(
            pattern,
            np.broadcast_to(constants, (len(answers), len(constants))),
            np.broadcast_to(relations, (len(answers), len(relations))),
            answers,
            split,
            limit,
        )

    def support(self, formula: str | Formula, split: str = "test") -> Triples:
        """The edges by which entities answer a formula: one way for each answer, each edge once."""
        edges: dict[tuple[int, int, int], None] = {}
        names = self.vocabulary
        answers = self.answer_tuples(formula, split).rows
        for witnesses in self.witnesses(formula, answers, split):
            for witness in witnesses:
                for literal in witness.disjunct.literals:
                    if isinstance(literal.atom, Atom) and not literal.negated:
                        head, tail = (
                            witness.values[term]
                            if isinstance(term, Variable)
                            else names.entity(term.name)
                            for term in literal.atom.terms
                        )
                        edges[head, names.relation(literal.atom.relation), tail] = None
        return np.array([*edges], np.int64).reshape(-1, 3)

    def explain(
        self,
        formula: str | Formula,
        entity: str | Sequence[str],
        split: str = "train",
        limit: int = 1,
    ) -> list[Reason]:
        """Why an entity (an id or a label), or a tuple, answers a formula, by known edges only."""
        names = [entity] if isinstance(entity, str) else entity
        check_arity(read_query(formula).formula, names)
        rows = [[self.vocabulary.entity(name) for name in names]]
        (witnesses,) = self.witnesses(formula, rows, split, limit)
        return explain(witnesses, self.vocabulary, lambda edges: self.holds(edges, split))

    def _resolve(self, query: Query) -> tuple[Pattern, Int64s, Int64s]:
        """A formula as a pattern, with the rows of its constants [c] and relations [r]."""
        pattern = Pattern(query.formula)
        return pattern, *self.vocabulary.resolve(pattern, query.text)
