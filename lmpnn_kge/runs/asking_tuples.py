"""Answers to a question with several free variables: the best tuples, checked against the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lmpnn_kge.methods.method import Method
from lmpnn_kge.query.formula import Constant, Equal, Term
from lmpnn_kge.query.reason import Name
from lmpnn_kge.runs.answer import Answer, AnswerList, TupleAnswer
from lmpnn_kge.runs.asker import Asker
from lmpnn_kge.runs.notes import unknown_premises
from lmpnn_kge.runs.questions import Batch, Question
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.hybrid import Hybrid
from lmpnn_kge.search.logic import IMPOSSIBLE
from lmpnn_kge.search.search import Search
from lmpnn_kge.search.solve import Solver
from lmpnn_kge.search.tuples import find_tuples, tuple_truth

#: Tuples that are found to choose the answers from, at least, and for each answer.
FOUND, FOUND_PER_ANSWER = 64, 4

#: Tuples of entities that are best by themselves, for a method that scores entities only.
COMBINED = 4096

#: The log weight of an entity that a relation was never seen with, which is thus ranked last.
UNSEEN = -1000.0

TRUTH = "the score of a tuple is its truth by search, which is not calibrated as a probability"
MEAN = "the score of a tuple is the mean of those of its entities, each scored by itself"


def answer_tuples(asking: Asker, question: Question) -> AnswerList:
    """The best tuples, marked as known or predicted if there is a graph."""
    batch, method = Batch.of([question]), asking.method
    count, solver = question.most(asking.k), _solver(method)
    weights = _weights(asking, batch)
    found = max(FOUND, FOUND_PER_ANSWER * count)
    if solver is None:
        tuples = _combined(method, batch, weights)
        found = COMBINED if asking.predicted else found  # the best may all be known
    else:
        tuples = find_tuples(
            solver,
            batch.pattern,
            *_first(batch, method),
            found,
            weights=weights,
            certain=not asking.predicted,
        )
    scores = _scores(method, batch, tuples)
    facts = None if asking.knowledge is None else asking.knowledge.facts
    offered = ~_ruled_out(batch, tuples, facts)
    if solver is not None:
        offered &= scores > IMPOSSIBLE
    tuples, scores = tuples[offered], scores[offered]
    weight = sum(own[column] for own, column in zip(weights, tuples.unbind(1), strict=True))
    order = (scores + weight).argsort(descending=True, stable=True)[:found]
    answers = _answers(asking, question, tuples[order], scores[order])
    if asking.predicted:
        answers = [(row, answer) for row, answer in answers if not answer.known]
    notes = [*question.notes, MEAN if solver is None else TRUTH]
    if asking.knowledge is not None:
        notes += unknown_premises([question], batch, asking.knowledge)[0]
    if not answers:
        notes.append("no tuple is left: the formula or the graph rules out all that were found")
    return AnswerList(question.text, _explained(asking, question, answers[:count]), notes)


def explain_tuple(asking: Asker, question: Question, rows: Sequence[int]) -> Answer:
    """One tuple as an answer, whatever its rank is, with its reasons."""
    tuples = torch.tensor([rows], device=asking.method.device)
    scores = _scores(asking.method, Batch.of([question]), tuples)
    return _explained(asking, question, _answers(asking, question, tuples, scores))[0]


def _solver(method: Method) -> Solver | None:
    return method.solver if isinstance(method, Search | Hybrid) else None


def _first(batch: Batch, method: Method) -> tuple[Tensor, Tensor]:
    """The constants [c] and relations [r] of a batch of one question."""
    constants, relations = batch.tensors(method.device)
    return constants[0], relations[0]


def _weights(asking: Asker, batch: Batch) -> list[Tensor]:
    """For each free variable, a log weight [E]: lower for entities that no relation was seen with.

    What is done to these entities is what the settings of candidates say.
    """
    weights = []
    for variable in batch.pattern.free:
        weight = torch.zeros(asking.method.num_entities, device=asking.method.device)
        if asking.knowledge is not None and asking.candidates != "any":
            about = replace(batch, pattern=batch.pattern.about(variable))
            least = UNSEEN if asking.candidates == "typed-first" else -torch.inf
            weight.masked_fill_(~asking.knowledge.fitting(about)[0], least)
        weights.append(weight)
    return weights


def _marginals(method: Method, batch: Batch) -> list[Tensor]:
    """The scores [E] of all entities for each free variable."""
    query = batch.tensors(method.device)
    patterns = [batch.pattern.about(variable) for variable in batch.pattern.free]
    return [method.answer(pattern, *query)(slice(None))[0] for pattern in patterns]


def _combined(method: Method, batch: Batch, weights: Sequence[Tensor]) -> Tensor:
    """All tuples of the best entities of each free variable, [m, k]."""
    free = len(batch.pattern.free)
    each = min(method.num_entities, max(1, int(COMBINED ** (1 / free) + 1e-9)))
    best = []
    for scores, weight in zip(_marginals(method, batch), weights, strict=True):
        top = (scores + weight).topk(each)
        best.append(top.indices[top.values > -torch.inf])
    return torch.cartesian_prod(*best).view(-1, free)


def _scores(method: Method, batch: Batch, tuples: Tensor) -> Tensor:
    """The score of each tuple: the log truth by search, or the mean score of its entities."""
    solver = _solver(method)
    if solver is not None:
        return tuple_truth(solver, batch.pattern, *_first(batch, method), tuples)
    marginals = _marginals(method, batch)
    own = [scores[rows] for scores, rows in zip(marginals, tuples.unbind(1), strict=True)]
    return torch.stack(own).mean(0)


def _ruled_out(batch: Batch, tuples: Tensor, facts: Facts | None) -> Tensor:
    """The tuples that break a condition between their entities in every disjunct, [m].

    An equality does not hold, a denied edge is known, or an entity could answer only by an edge to
    itself, although its relation has none.
    """
    pattern = batch.pattern
    constants, relations = (columns[0] for columns in batch.tensors(tuples.device))
    values: dict[Term, Tensor] = {
        Constant(name): constants[column].expand(len(tuples))
        for column, name in enumerate(pattern.constants)
    }
    values |= zip(pattern.free, tuples.unbind(1), strict=True)
    ruled_out = torch.ones(len(tuples), dtype=torch.bool, device=tuples.device)
    for disjunct in pattern.disjuncts:
        broken = torch.zeros_like(ruled_out)
        for literal in disjunct.literals:
            if not all(term in values for term in literal.terms):
                continue
            head, tail = (values[term] for term in literal.terms)
            if isinstance(literal.atom, Equal):
                broken |= (head == tail) == literal.negated
                continue
            relation = relations[pattern.relations.index(literal.atom.relation)]
            if not literal.negated:
                has_loops = facts is not None and bool(facts.loops[relation])
                broken |= (head == tail) & (not has_loops)
            elif facts is not None:
                broken |= facts.hold(facts.keys_of(head, relation), tail)
        ruled_out &= broken
    return ruled_out


def _answers(
    asking: Asker, question: Question, tuples: Tensor, scores: Tensor
) -> list[tuple[list[int], Answer]]:
    """Tuples as answers with their marks, each with its rows."""
    rows, names = tuples.tolist(), asking.vocabulary
    shown = scores.exp() if _solver(asking.method) is not None else scores
    marks: list[tuple[bool | None, bool | None]] = [(None, None)] * len(rows)
    if asking.knowledge is not None and rows:
        known, confirmed = (
            asking.knowledge.answering(question.formula, rows, split).tolist()
            for split in ("train", "test")
        )
        marks = list(zip(known, confirmed, strict=True))
    answers: list[tuple[list[int], Answer]] = []
    for row, score, (is_known, is_confirmed) in zip(rows, shown.tolist(), marks, strict=True):
        entities = tuple(Name(names.entity_ids[entity], names.label(entity)) for entity in row)
        id_ = ", ".join(str(Constant(name.id)) for name in entities)
        label = ", ".join(name.label for name in entities)
        answer = TupleAnswer(
            id_, label, score, known=is_known, confirmed=is_confirmed, entities=entities
        )
        answers.append((row, answer))
    return answers


def _explained(
    asking: Asker, question: Question, answers: Sequence[tuple[list[int], Answer]]
) -> list[Answer]:
    """The answers with their reasons, if these are asked for."""
    if asking.explaining is None or not answers:
        return [answer for _, answer in answers]
    known = [bool(answer.known) for _, answer in answers]
    rows = [row for row, _ in answers]
    reasons = asking.explaining.explain(question.formula, rows, known, asking.witnesses)
    pairs = zip(answers, reasons, strict=True)
    return [replace(answer, reasons=tuple(why)) for (_, answer), why in pairs]
