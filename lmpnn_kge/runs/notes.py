"""Notes on answers: conditions that the graph knows nothing about, and why nothing is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from lmpnn_kge.errors import short
from lmpnn_kge.query.formula import FREE, And, Atom, Constant, Formula, Not, Or
from lmpnn_kge.query.negations import denials, exclusions
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.runs.knowledge import Knowledge
from lmpnn_kge.runs.questions import Batch, Question

#: Why an entity is not offered: `? != it`, an edge to itself, a violated condition, no edge of its
#: kind, or because it is known.
EXCLUDED, ANCHORS, REFUTED, UNFIT, KNOWN = "excluded", "anchors", "refuted", "unfit", "known"


def unknown_premises(
    questions: Sequence[Question], batch: Batch, knowledge: Knowledge
) -> list[list[str]]:
    """For each question of a batch, notes on atoms of a constant that has no such known edge."""
    notes: list[list[str]] = [[] for _ in questions]
    constants, relations = batch.tensors(knowledge.device)
    columns = {place: column for column, place in enumerate(batch.pattern.constants)}
    for atom, negated in dict.fromkeys(_signed_atoms(batch.pattern.formula)):
        if not isinstance(atom.head, Constant):  # a pattern's atom begins with its constant
            continue
        relation = relations[:, batch.pattern.relations.index(atom.relation)]
        keys = knowledge.facts.keys_of(constants[:, columns[atom.head.name]], relation)
        if isinstance(atom.tail, Constant):
            holds = knowledge.facts.hold(keys, constants[:, columns[atom.tail.name]])
        else:
            holds = knowledge.facts.count(keys) > 0
        for row in (~holds).nonzero().flatten().tolist():
            effect = ", so its negation excludes nothing" if negated else ""
            notes[row].append(f"no edge {questions[row].shape.restored(atom)} is known{effect}")
    return notes


def nothing_left(
    question: Question, removed: Mapping[str, Tensor], knowledge: Knowledge | None
) -> str:
    """Why no entity is left: how many each reason removes, one after the other.

    removed has a mask [E] of the entities that each reason removes.
    """
    left = torch.ones_like(removed[EXCLUDED])
    shares = []
    for reason, mask in _reasons(question, removed, knowledge):
        share = int((left & mask).sum())
        left &= ~mask
        if share:
            shares.append(f"{share:,} {reason}")
    return f"all {len(left):,} entities are ruled out: {', '.join(shares)}"


def _reasons(
    question: Question, removed: Mapping[str, Tensor], knowledge: Knowledge | None
) -> Iterator[tuple[str, Tensor]]:
    """Each reason in words, with the entities that it removes."""
    formula = question.pattern.formula
    conditions = [f"? != {question.shape.terms[term]}" for term in exclusions(formula)[1]]
    yield f"by {short(' and '.join(conditions))}", removed[EXCLUDED]
    yield "as named in the question", removed[ANCHORS]
    if knowledge is None:
        return
    disjuncts = normalise(formula)
    if len(disjuncts) == 1:
        for denied in denials(disjuncts[0]):
            condition = denied.body if isinstance(denied, Not) else Not(denied)
            answers = knowledge.known(Batch.of([question]).part(denied))[0]
            yield f"by {question.shape.restored(condition)}", answers
    yield "by conditions in every part of the formula", removed[REFUTED]
    if UNFIT in removed:
        atoms = [
            str(question.shape.restored(literal.atom))
            for disjunct in disjuncts
            for literal in disjunct.literals
            if isinstance(literal.atom, Atom) and FREE in literal.terms and not literal.negated
        ]
        ends = short(", ".join(dict.fromkeys(atoms)))
        yield f"as never seen in place of ? in {ends}", removed[UNFIT]
    if KNOWN in removed:
        yield "as known", removed[KNOWN]


def _signed_atoms(formula: Formula, negated: bool = False) -> Iterator[tuple[Atom, bool]]:
    """The atoms of a formula, each with whether it is negated."""
    match formula:
        case Atom():
            yield formula, negated
        case Not(body):
            yield from _signed_atoms(body, not negated)
        case And(parts) | Or(parts):
            for part in parts:
                yield from _signed_atoms(part, negated)
