"""Answers to many questions: those of a pattern are scored and looked up in the graph at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from lmpnn_kge.device import computing
from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import Formula, has_negation
from lmpnn_kge.query.parser import check_arity, check_single
from lmpnn_kge.runs.answer import Answer, AnswerList, NumberOfAnswers
from lmpnn_kge.runs.asker import Asker
from lmpnn_kge.runs.asking_tuples import answer_tuples, explain_tuple
from lmpnn_kge.runs.best import choosing, excluded, no_entities, score
from lmpnn_kge.runs.fitting import FittedCount
from lmpnn_kge.runs.notes import (
    ANCHORS,
    EXCLUDED,
    KNOWN,
    REFUTED,
    UNFIT,
    nothing_left,
    unknown_premises,
)
from lmpnn_kge.runs.questions import Batch, Question, atoms_of_answer, by_pattern
from lmpnn_kge.work.deadline import time_limit

#: Scores that are held at once, and marks of entities if only those of them are held.
CHUNK_SCORES, CHUNK_MARKS = 2**22, 2**25


@dataclass(frozen=True, eq=False)
class Asking(Asker):
    """Answers questions, and explains the answers."""

    @computing()
    def ask(self, formulas: Sequence[str | Formula]) -> list[AnswerList | QueryError]:
        """The answers to each formula, or what is wrong with it."""
        read = [self._read(formula) for formula in formulas]
        questions = [item for item in read if isinstance(item, Question)]
        held = CHUNK_SCORES if self._holds_scores else CHUNK_MARKS
        most = max(1, held // max(1, self.method.num_entities))
        answers: dict[int, AnswerList | QueryError] = {}
        for group in by_pattern(questions, most):
            found = self._answer([questions[position] for position in group])
            answers |= zip(group, found, strict=True)
        in_order = iter(sorted(answers.items()))
        return [next(in_order)[1] if isinstance(item, Question) else item for item in read]

    @property
    def _holds_scores(self) -> bool:
        """Whether scores of all entities are needed: the probability of an answer needs them."""
        return self.method.streamed is None or self.fitted.probability is not None

    @computing()
    @torch.no_grad()
    def explain(self, formula: str | Formula, entity: str | Sequence[str]) -> Answer:
        """One entity or tuple as an answer, whatever its rank is, with its reasons."""
        question = self._read(formula)
        if isinstance(question, QueryError):
            raise question
        named = [entity] if isinstance(entity, str) else entity
        check_arity(question.formula, named)
        entities = [self.vocabulary.entity(name) for name in named]
        rows = torch.tensor(entities, device=self.method.device)
        with time_limit(self.timeout):
            if len(entities) > 1:
                return explain_tuple(self, question, entities)
            batch = Batch.of([question])
            scores = score(self.method, batch)
            known = confirmed = None
            if self.knowledge is not None:
                known, confirmed = (mask[0] for mask in self.knowledge.known_and_confirmed(batch))
            known_rows = torch.zeros_like(scores[0], dtype=torch.bool) if known is None else known
            chances = self._probabilities(question, scores[0], rows, known_rows)
            answers = list(self._answers(rows, scores[0][rows], chances, known, confirmed))
            return self._explained(question, rows, answers)[0]

    @computing()
    @torch.no_grad()
    def count(self, formula: str | Formula, counting: FittedCount) -> NumberOfAnswers:
        """How many answers a formula with one free variable probably has."""
        question = self._read(formula)
        if isinstance(question, QueryError):
            raise question
        check_single(question.formula)
        with time_limit(self.timeout):
            batch = Batch.of([question])
            scores = score(self.method, batch)
            nothing = no_entities(self.method, batch)
            known = nothing if self.knowledge is None else self.knowledge.known(batch)
            seen = nothing if counting.known is None else known
            offered = scores.masked_fill(excluded(self.method, batch), -torch.inf)
            expected = float(counting.count(question.pattern, offered, seen))
        number = int(known.sum())
        if not has_negation(question.formula):  # what is known holds
            expected = max(expected, number)
        return NumberOfAnswers(expected, None if self.knowledge is None else number)

    def _read(self, formula: str | Formula) -> Question | QueryError:
        try:
            if self.knowledge is None:
                return Question.read(formula, self.vocabulary)
            question = Question.read(formula, self.vocabulary, self.knowledge.seen)
            self.knowledge.check(question)
        except QueryError as error:
            return error
        return question

    def _answer(self, questions: list[Question]) -> list[AnswerList | QueryError]:
        """Answer questions of one pattern together or, if that is refused, one by one.

        The graph refuses to try too many combinations of entities, which depends on the number of
        questions, and so does the time that they take.
        """
        try:
            with time_limit(self.timeout):
                return [*self._answer_together(questions)]
        except QueryError as error:
            if len(questions) == 1:
                return [error]
        return [self._answer([question])[0] for question in questions]

    @torch.no_grad()
    def _answer_together(self, questions: list[Question]) -> list[AnswerList]:
        if len(questions[0].pattern.free) > 1:
            return [answer_tuples(self, question) for question in questions]
        batch = Batch.of(questions)
        # Before the graph is asked, which may take long for what the method refuses.
        choose = choosing(self.method, batch, every=self._holds_scores, index=self.index)
        removed = {EXCLUDED: excluded(self.method, batch), ANCHORS: self._anchors(batch)}
        known = confirmed = fitting = None
        notes: list[list[str]] = [[] for _ in questions]
        if self.knowledge is not None:
            known, confirmed = self.knowledge.known_and_confirmed(batch)
            removed[REFUTED] = self.knowledge.refuted(batch)
            if self.candidates != "any":
                fitting = self.knowledge.fitting(batch)
                removed |= {UNFIT: ~fitting} if self.candidates == "typed" else {}
            removed |= {KNOWN: known} if self.predicted else {}
            notes = unknown_premises(questions, batch, self.knowledge)
        omitted = reduce(torch.logical_or, removed.values())
        known_rows = torch.zeros_like(omitted) if known is None else known
        results = []
        most = [question.most(self.k) for question in questions]
        best = choose(omitted, fitting, max(most))
        for row, question in enumerate(questions):
            rows, scores = (values[row][: most[row]] for values in (best.rows, best.scores))
            if not len(rows):
                reasons = {reason: mask[row] for reason, mask in removed.items()}
                notes[row].append(nothing_left(question, reasons, self.knowledge))
            marks = (None if mask is None else mask[row] for mask in (known, confirmed))
            every = None if best.every is None else best.every[row]
            chances = self._probabilities(question, every, rows, known_rows[row])
            unexplained = self._answers(rows, scores, chances, *marks)
            answers = self._explained(question, rows, list(unexplained))
            noted = (*question.notes, *notes[row])
            estimated = self.fitted.probability is not None
            results.append(AnswerList(question.text, answers, noted, estimated=estimated))
        return results

    def _probabilities(
        self, question: Question, scores: Tensor | None, rows: Tensor, known: Tensor
    ) -> list[float | None]:
        """The probability of the entities of some rows, by the scores [E] of all.

        What is known is certain, unless something is denied: more edges could make that wrong, and
        the probability of that is not estimated.
        """
        if self.fitted.probability is None or scores is None:
            return [None] * len(rows)
        estimate = self.fitted.probability(question.pattern, scores[None], known[None], rows[None])[
            0
        ]
        certain = None if has_negation(question.formula) else 1.0
        pairs = zip(estimate.tolist(), known[rows].tolist(), strict=True)
        return [certain if is_known else chance for chance, is_known in pairs]

    def _explained(self, question: Question, rows: Tensor, answers: list[Answer]) -> list[Answer]:
        """The answers with their reasons, if these are asked for."""
        if self.explaining is None or not answers:
            return answers
        known = [bool(answer.known) for answer in answers]
        reasons = self.explaining.explain(question.formula, rows.tolist(), known, self.witnesses)
        pairs = zip(answers, reasons, strict=True)
        return [replace(answer, reasons=tuple(why)) for answer, why in pairs]

    def _answers(
        self,
        rows: Tensor,
        scores: Tensor,
        chances: list[float | None],
        known: Tensor | None,
        confirmed: Tensor | None,
    ) -> Iterator[Answer]:
        """The entities of rows [n] as answers, by their scores [n] and the marks [E] of all."""
        nothing = [None] * len(rows)
        columns = (
            rows.tolist(),
            scores.tolist(),
            chances,
            nothing if known is None else known[rows].tolist(),
            nothing if confirmed is None else confirmed[rows].tolist(),
        )
        for entity, value, chance, is_known, is_confirmed in zip(*columns, strict=True):
            names = self.vocabulary.entity_ids[entity], self.vocabulary.label(entity)
            yield Answer(*names, value, chance, is_known, is_confirmed)

    def _anchors(self, batch: Batch) -> Tensor:
        """The constants that could answer only by an edge to themselves, as a mask [n, E].

        A relation that has such edges in the training graph allows more of them.
        """
        constants, relations = batch.tensors(self.method.device)
        if self.knowledge is None:
            loops = torch.zeros_like(relations, dtype=torch.bool)
        else:
            loops = self.knowledge.facts.loops[relations]  # [n, r]
        mask = no_entities(self.method, batch)
        rows = torch.arange(len(batch), device=mask.device)
        for column in range(constants.shape[1]):
            needs_loop = torch.ones_like(rows, dtype=torch.bool)
            for atoms in atoms_of_answer(batch.pattern):
                edges = [atom.relation for atom in atoms if atom.constant == column]
                needs_loop &= (~loops[:, edges]).any(1)
            mask[rows, constants[:, column]] |= needs_loop
        return mask
