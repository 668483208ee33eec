"""What a graph knows about questions, in the rows of a run: for all questions of a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.answers import Mask
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.graph.vocabulary import Int64s, Rows, Vocabulary
from lmpnn_kge.query.explain import Witness
from lmpnn_kge.query.formula import Formula, has_negation
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.runs.questions import Batch, Question, atoms_of_answer
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.work.once import once

#: Rows of entities, or of the entities of tuples.
AnswerRows = Sequence[int | Sequence[int]]


@dataclass(frozen=True, eq=False)
class Knowledge:
    """A graph that is asked in the rows of another vocabulary, that of a run.

    Masks are [n, E]: every entity of the run, for every question of a batch.
    """

    graph: KnowledgeGraph
    vocabulary: Vocabulary
    device: torch.device

    @once
    def facts(self) -> Facts:
        """The training edges between entities of the run."""
        names = self.vocabulary
        triples = self.triples("train")
        return Facts.of(triples, names.num_entities, names.num_relations).to(self.device)

    def triples(self, split: str) -> Triples:
        """The triples of a split whose names the run has, in its rows."""
        triples = self._here.of(self.graph.triples(split))
        return triples[(triples >= 0).all(1)]

    def seen(self, entity: int, relation: int) -> bool:
        """Whether an entity is the head of a training edge of a relation; r + R inverts r."""
        key = entity * 2 * self.vocabulary.num_relations + relation
        return bool(self.facts.count(torch.tensor([key], device=self.device)))

    def check(self, question: Question) -> None:
        """QueryError if the graph lacks a name of the question."""
        names, there = self.vocabulary, self._there
        relations = question.relations % max(1, names.num_relations)
        for role, rows, table, ids in (
            ("entity", question.constants, there.entities, names.entity_ids),
            ("relation", relations, there.relations, names.relation_ids),
        ):
            missing = rows[table[rows] < 0].tolist()
            if missing:
                raise QueryError(f"the graph {self.graph.name} has no {role} {ids[missing[0]]!r}")

    def known(self, batch: Batch) -> Tensor:
        """The entities that answer by the training edges."""
        found = self.graph.database.answer(batch.pattern, *self._rows_there(batch), "train")
        return self._mask(found.mask(self.graph.num_entities))

    def known_answers(self, pattern: Pattern, constants: Tensor, relations: Tensor) -> Tensor:
        """The same for queries [n, c] and [n, r] of a pattern."""
        return self.known(Batch(pattern, constants.cpu().numpy(), relations.cpu().numpy()))

    def known_and_confirmed(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The entities that answer by the training edges, and those that do by all edges."""
        database, rows = self.graph.database, self._rows_there(batch)
        if has_negation(batch.pattern.formula):  # more edges can make an answer wrong
            known, confirmed = (
                database.answer(batch.pattern, *rows, split) for split in ("train", "test")
            )
        else:  # one statement finds both: what needs no missing edge is known
            confirmed = database.missing_edges(batch.pattern, *rows, "train", "test")
            assert confirmed.costs is not None
            known = confirmed.only(confirmed.costs == 0)
        count = self.graph.num_entities
        return self._mask(known.mask(count)), self._mask(confirmed.mask(count))

    def witnesses(
        self, formula: Formula, answers: AnswerRows, limit: int, split: str = "train"
    ) -> list[list[Witness]]:
        """Up to `limit` ways in which each entity or tuple answers by the edges of a split."""
        there, here = self._there.entities, self._here.entities
        found = self.graph.witnesses(formula, there[np.array(answers, np.int64)], split, limit)
        return [
            [
                replace(w, values={v: int(here[row]) for v, row in w.values.items()})
                for w in witnesses
            ]
            for witnesses in found
        ]

    def answering(self, formula: Formula, answers: AnswerRows, split: str) -> Tensor:
        """Which tuples [m, k] answer a formula by the edges of a split, [m]."""
        found = [bool(witnesses) for witnesses in self.witnesses(formula, answers, 1, split)]
        return torch.tensor(found, dtype=torch.bool, device=self.device)

    def refuted(self, batch: Batch) -> Tensor:
        """The entities that violate a negated condition in the training edges."""
        return self._mask(self.graph.refuted(batch.pattern, *self._rows_there(batch)))

    def fitting(self, batch: Batch) -> Tensor:
        """The entities that were seen at `?` with all relations of a disjunct."""
        _, relations = batch.tensors(self.device)
        fitting = torch.zeros(
            len(batch), self.vocabulary.num_entities, dtype=torch.bool, device=self.device
        )
        for atoms in atoms_of_answer(batch.pattern):
            in_disjunct = torch.ones_like(fitting)
            for atom in atoms:
                # The head of an inverse relation is the tail of the relation.
                shift = self.vocabulary.num_relations * atom.at_tail
                roles = (relations[:, atom.relation] + shift) % (2 * self.vocabulary.num_relations)
                in_disjunct &= self.facts.heads_of(roles)
            fitting |= in_disjunct
        return fitting

    @cached_property
    def _there(self) -> Rows:
        """The rows of the run's names in the graph."""
        return self.vocabulary.rows_in(self.graph.vocabulary)

    @cached_property
    def _here(self) -> Rows:
        """The rows of the graph's names in the run."""
        return self.graph.vocabulary.rows_in(self.vocabulary)

    def _rows_there(self, batch: Batch) -> tuple[Int64s, Int64s]:
        count = max(1, self.vocabulary.num_relations)
        inverse = batch.relations // count
        relations = self._there.relations[batch.relations % count]
        return (
            self._there.entities[batch.constants],
            relations + inverse * self.graph.num_relations,
        )

    def _mask(self, there: Mask) -> Tensor:
        """A mask over the entities of the graph as one over those of the run."""
        rows = self._there.entities
        mask = there[:, rows]
        mask[:, rows < 0] = False  # the graph does not have these
        return torch.from_numpy(mask).to(self.device)
