"""Questions as rows of a pattern: those that differ only in names are answered together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lmpnn_kge.graph.vocabulary import Int64s, Seen, Vocabulary
from lmpnn_kge.query.formula import (
    FREE,
    Atom,
    Constant,
    Equal,
    Formula,
    Term,
    Variable,
    free_variables,
    map_literals,
    map_terms,
    terms,
)
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import check_single, read_query
from lmpnn_kge.query.patterns import Pattern

#: Answers to a question that does not say how many.
DEFAULT_ANSWERS = 10


@dataclass(frozen=True, eq=False)
class Shape:
    """A formula as a pattern, with the names that fill its places.

    An atom of the pattern begins with its constant, or with the variable that comes first, and `?`
    comes last: borders(?, Kenya) and capital(Kenya, ?) have the pattern r1(s1,f). Every atom has a
    place of its own for its relation.
    """

    pattern: Pattern
    terms: dict[Term, Term]  # of the pattern -> of the formula
    relations: list[tuple[str, bool]]  # each with whether the pattern has its inverse

    @classmethod
    def of(cls, formula: Formula) -> Shape:
        named = [term for term in terms(formula) if isinstance(term, Constant)]
        free = free_variables(formula)
        variables = [term for term in terms(formula) if isinstance(term, Variable)]
        bound = [variable for variable in variables if variable not in free]
        order = [*named, *bound, *free]
        places: dict[Term, Term] = {variable: variable for variable in free}
        places |= {term: Constant(f"s{number}") for number, term in enumerate(named, 1)}
        places |= {term: Variable(f"e{number}") for number, term in enumerate(bound, 1)}
        relations: dict[tuple[str, bool, Term, Term], str] = {}  # equal atoms share a place

        def change(literal: Atom | Equal) -> Formula:
            head, tail = sorted(literal.terms, key=order.index)
            if isinstance(literal, Equal):
                return Equal(places[tail], places[head])  # ? = Kenya
            key = literal.relation, head != literal.head, head, tail
            place = relations.setdefault(key, f"r{len(relations) + 1}")
            return Atom(place, places[head], places[tail])

        pattern = Pattern(map_literals(formula, change))
        names = {place: term for term, place in places.items()}
        return cls(pattern, names, [(relation, inverse) for relation, inverse, *_ in relations])

    @property
    def constants(self) -> list[str]:
        """The names in the places for entities."""
        return [self.terms[Constant(place)].name for place in self.pattern.constants]

    def restored(self, part: Formula) -> Formula:
        """A part of the pattern in the words of the formula."""
        pattern, constants, relations = self.pattern.part(part)
        filled = pattern.fill(
            [self.constants[column] for column in constants],
            [self.relations[column] for column in relations],
        )
        return map_terms(filled, lambda term: self.terms.get(term, term))


@dataclass(frozen=True, eq=False)
class Question:
    """A formula with the rows of its names, in the order of the places of its pattern."""

    text: str
    formula: Formula  # with ids for all names
    shape: Shape
    constants: Int64s  # [c]
    relations: Int64s  # [r]; r + R is the inverse of relation r
    notes: tuple[str, ...] = ()
    limit: int | None = None  # of a SPARQL query

    @classmethod
    def read(
        cls, formula: str | Formula, vocabulary: Vocabulary, seen: Seen | None = None
    ) -> Question:
        """Parse a formula and look up its names; QueryError says what is wrong with it."""
        query = read_query(formula)
        parsed = query.formula
        written = Pattern(parsed)
        names = vocabulary.look_up(written, query.text, seen)
        normalise(parsed)  # so that an error about its form shows the formula, not the pattern
        shape = Shape.of(parsed)
        entity = dict(zip(written.constants, names.constants, strict=True))
        relation = dict(zip(written.relations, names.relations, strict=True))
        rows = [relation[r] + vocabulary.num_relations * inverse for r, inverse in shape.relations]
        ids = vocabulary.with_ids(written, names.constants, names.relations)
        return cls(
            formula if isinstance(formula, str) else str(formula),
            ids,
            shape,
            np.array([entity[name] for name in shape.constants], np.int64),
            np.array(rows, np.int64),
            names.notes,
            query.limit,
        )

    @classmethod
    def read_single(cls, formula: str | Formula, vocabulary: Vocabulary) -> Question:
        """A question with one free variable; QueryError if it has several."""
        question = cls.read(formula, vocabulary)
        check_single(question.formula)
        return question

    @property
    def pattern(self) -> Pattern:
        return self.shape.pattern

    def most(self, k: int | None) -> int:
        """How many answers are wanted: k, or the LIMIT of the question, or ten."""
        return self.limit or DEFAULT_ANSWERS if k is None else max(0, k)


@dataclass(frozen=True, eq=False)
class Batch:
    """Questions of one pattern, as columns."""

    pattern: Pattern
    constants: Int64s  # [n, c]
    relations: Int64s  # [n, r]

    @classmethod
    def of(cls, questions: Sequence[Question]) -> Batch:
        return cls(
            questions[0].pattern,
            np.stack([question.constants for question in questions]),
            np.stack([question.relations for question in questions]),
        )

    def __len__(self) -> int:
        return len(self.constants)

    def part(self, formula: Formula) -> Batch:
        """A part of every question."""
        pattern, constants, relations = self.pattern.part(formula)
        return Batch(pattern, self.constants[:, constants], self.relations[:, relations])

    def tensors(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The constants and the relations on a device."""
        constants, relations = map(torch.from_numpy, (self.constants, self.relations))
        return constants.to(device), relations.to(device)


def by_pattern(questions: Sequence[Question], most: int) -> Iterator[list[int]]:
    """The positions of questions of one pattern, at most so many at once."""
    groups: dict[Pattern, list[int]] = {}
    for position, question in enumerate(questions):
        groups.setdefault(question.pattern, []).append(position)
    for group in groups.values():
        for first in range(0, len(group), most):
            yield group[first : first + most]


class AtomOfAnswer(NamedTuple):
    """A positive atom with `?` at one end, by the columns of its places."""

    relation: int
    at_tail: bool  # whether `?` is its tail
    constant: int | None  # at the other end, if there is one


@lru_cache(maxsize=1024)
def atoms_of_answer(pattern: Pattern) -> tuple[tuple[AtomOfAnswer, ...], ...]:
    """The positive atoms with `?` in each disjunct; an atom with `?` at both ends is two."""
    constants, relations = pattern.constants, pattern.relations
    return tuple(
        tuple(
            AtomOfAnswer(
                relations.index(literal.atom.relation),
                at_tail,
                constants.index(other.name) if isinstance(other, Constant) else None,
            )
            for literal in disjunct.literals
            if isinstance(literal.atom, Atom) and not literal.negated
            for at_tail, (end, other) in ((False, literal.terms), (True, literal.terms[::-1]))
            if end == FREE
        )
        for disjunct in pattern.disjuncts
    )
