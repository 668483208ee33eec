"""Answers to a few queries by following edges in the index, which is faster than a statement.

It works for formulas without cycles: the entities that a variable can be then depend only on the
branches of the formula that end in it, and not on the values of other variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np

from lmpnn_kge.graph.adjacency import Adjacency
from lmpnn_kge.graph.answers import Int64s, spread
from lmpnn_kge.graph.engine import Ints, Task
from lmpnn_kge.graph.triples import distinct
from lmpnn_kge.query.compiler import without_equalities
from lmpnn_kge.query.formula import FREE, Atom, Constant, Term, Variable
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom
from lmpnn_kge.work.deadline import check_time

#: Edges that are followed before a statement is preferred.
MANY = 1_000_000

#: Conditions of a formula that is followed: each may take some calls within those of the last one.
LONGEST = 64


@dataclass(frozen=True)
class Step:
    """An atom as a way from its other end to a variable."""

    relation: str
    inverse: bool  # whether the variable is its head
    start: Constant | Branch


@dataclass(frozen=True)
class Branch:
    """What limits a variable: it equals constants, steps lead to it, other branches do not."""

    equal: tuple[Constant, ...] = ()
    steps: tuple[Step, ...] = ()
    denied: tuple[Branch, ...] = ()


class _Refused(Exception):
    """A formula that is not a tree, or that leads along too many edges."""


class _Reached(NamedTuple):
    """The entities that a variable can be in each query, in ascending order, each once."""

    keys: Int64s  # query · E + entity
    costs: Int64s  # the least number of unobserved edges on the way


def follow(task: Task, adjacency: Adjacency) -> dict[str, Ints] | None:
    """The answers that the statement of a task yields; None if it should be run instead."""
    branches = [branch for disjunct in task.disjuncts if (branch := branch_of(disjunct))]
    if len(branches) < len(task.disjuncts):
        return None
    walk = _Walk(task, adjacency)
    try:
        found = [walk.entities(branch) for branch in branches]
    except _Refused:
        return None
    keys = np.concatenate([reached.keys for reached in found])
    query, answer = np.divmod(keys, adjacency.entities)
    return {"q": query, "answer": answer, "cost": np.concatenate([part.costs for part in found])}


@dataclass
class _Walk:
    task: Task
    index: Adjacency
    budget: int = MANY  # edges that may still be followed

    def entities(self, branch: Branch) -> _Reached:
        """The entities that a variable can be: all of them if nothing limits it."""
        parts = [self._equal(constant) for constant in branch.equal]
        parts += [self._step(step) for step in branch.steps]
        reached = reduce(_both, parts) if parts else self._all()
        for denied in branch.denied:
            kept = ~np.isin(reached.keys, self.entities(denied).keys, assume_unique=True)
            reached = _Reached(reached.keys[kept], reached.costs[kept])
        return reached

    def _all(self) -> _Reached:
        keys = np.arange(self.task.count * self.index.entities)
        self._spend(len(keys))
        return _Reached(keys, np.zeros_like(keys))

    def _equal(self, constant: Constant) -> _Reached:
        query = np.arange(self.task.count)
        keys = query * self.index.entities + self.task.constants[constant.name]
        return _Reached(keys, np.zeros_like(keys))

    def _step(self, step: Step) -> _Reached:
        """Follow all edges of a step."""
        check_time()
        index = self.index
        relations: Ints = self.task.relations[step.relation].astype(np.int64)
        if step.inverse:
            relations = index.inverse(relations)
        query, groups, costs = self._starts(step, relations * index.entities)
        self._spend(int(index.sizes(groups).sum()))
        start, position = index.members(groups)
        level = index.level[position]
        known = level <= self.task.level
        start, level = start[known], level[known]
        keys = query[start] * index.entities + index.target[position[known]]
        if self.task.observed is None:
            keys = distinct(keys)
            return _Reached(keys, np.zeros_like(keys))
        costs = costs[start] + (level > self.task.observed)
        order = np.lexsort((costs, keys))
        keys, first = np.unique(keys[order], return_index=True)
        return _Reached(keys, costs[order][first])

    def _starts(self, step: Step, first: Ints) -> tuple[Int64s, Int64s, Int64s]:
        """Query, group of edges and cost of every entity where a step begins.

        first [n] is the first key that each query's relation has in the index.
        """
        index = self.index
        if step.start == Branch():  # any entity: every group of the relation
            begin, end = (
                np.searchsorted(index.key, first + shift) for shift in (0, index.entities)
            )
            query, groups = spread(begin, end - begin)
            return query, groups, np.zeros_like(query)
        if isinstance(step.start, Constant):
            starts = self._equal(step.start)
        else:
            starts = self.entities(step.start)
        query, entity = np.divmod(starts.keys, index.entities)
        groups, exist = index.groups(first[query] + entity)
        return query[exist], groups[exist], starts.costs[exist]

    def _spend(self, edges: int) -> None:
        self.budget -= edges
        if self.budget < 0:
            raise _Refused


def _both(left: _Reached, right: _Reached) -> _Reached:
    """The entities of both, which need the edges of both."""
    keys, at_left, at_right = np.intersect1d(
        left.keys, right.keys, assume_unique=True, return_indices=True
    )
    return _Reached(keys, left.costs[at_left] + right.costs[at_right])


@lru_cache(maxsize=1024)
def branch_of(conjunct: Conjunct) -> Branch | None:
    """What limits `?` in a conjunct; None if the conjunct is not a tree, or too large a one."""
    if conjunct.size > LONGEST:
        return None
    try:
        return _whole_branch(conjunct, FREE)
    except _Refused:
        return None


def _whole_branch(conjunct: Conjunct, root: Variable) -> Branch:
    """What limits a variable in a conjunct that has nothing else."""
    conjunct, _ = without_equalities(conjunct)
    tree = _Tree(list(conjunct.literals), list(conjunct.groups), {root}, set(conjunct.bound))
    branch = tree.branch(root)
    if tree.literals or tree.groups:
        raise _Refused  # a part that only constants connect to the rest
    return branch


@dataclass
class _Tree:
    """A conjunct that is taken apart from its root."""

    literals: list[SignedAtom]  # those that are left
    groups: list[Conjunct]
    seen: set[Term]  # variables
    bound: set[Variable]

    def branch(self, variable: Variable) -> Branch:
        """Take everything that limits a variable, except what led to it."""
        own = [literal for literal in self.literals if variable in literal.terms]
        self.literals = [literal for literal in self.literals if variable not in literal.terms]
        groups = [group for group in self.groups if variable in group.terms]
        self.groups = [group for group in self.groups if variable not in group.terms]
        limits = [(literal.negated, self._limit(literal, variable)) for literal in own]
        limits += [(True, self._group(group, variable)) for group in groups]
        positive = [limit for negated, limit in limits if not negated]
        return Branch(
            tuple(constant for limit in positive for constant in limit.equal),
            tuple(step for limit in positive for step in limit.steps),
            tuple(limit for negated, limit in limits if negated),
        )

    def _limit(self, literal: SignedAtom, variable: Variable) -> Branch:
        """A literal as what limits one of its terms."""
        atom = literal.atom
        inverse = variable == atom.terms[0]
        other = atom.terms[1] if inverse else atom.terms[0]
        start: Constant | Branch
        if isinstance(other, Constant):
            start = other
        elif literal.negated or other in self.seen or other not in self.bound:
            raise _Refused  # it relates the values of two variables, or closes a cycle
        else:
            self.seen.add(other)
            start = self.branch(other)
        if isinstance(atom, Atom):
            return Branch(steps=(Step(atom.relation, inverse, start),))
        if isinstance(start, Branch):
            raise _Refused
        return Branch(equal=(start,))

    def _group(self, group: Conjunct, variable: Variable) -> Branch:
        """A negated group that limits one variable only."""
        others = {term for term in group.terms if isinstance(term, Variable)}
        if others - set(group.bound) != {variable}:
            raise _Refused
        return _whole_branch(group, variable)
