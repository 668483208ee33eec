"""The rules of sampled queries: BetaE's by default, each of which can be switched off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import QueryError, choices, short
from lmpnn_kge.graph.answers import Mask
from lmpnn_kge.graph.triples import Triples, both_directions, distinct
from lmpnn_kge.query.formula import And, Atom, Constant, Formula, Not, has_negation, literals
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.work.once import once

Ints = npt.NDArray[np.integer[Any]]

_SWITCH = {"on": True, "off": False}


@dataclass(frozen=True)
class Rules:
    """What a query must satisfy besides having an answer; False switches a rule off.

    `excluding`, `no_return` and `no_repeat` are about all queries, `zero_shot` is about training
    queries, and the others are about valid and test queries.
    """

    hard_answer: bool = True  # some answer needs an edge that the observed graph lacks
    few_answers: bool = True  # at most 100 answers, observed or not
    lost_answer: bool = True  # negation: some observed answer is not one on the full graph
    excluding: bool = True  # negation: some entity would answer without it
    no_return: bool = True  # no step is undone by its own inverse
    no_repeat: bool = True  # no atom, positive or negated, is the same edge as another
    zero_shot: bool = True  # pi, ip, 2u and up have no training queries
    shares: bool = False  # no relation and no anchor is in 20 % of the pairs of query and answer

    @classmethod
    def names(cls) -> list[str]:
        """The names of all rules, as on the command line."""
        return [_hyphened(rule.name) for rule in fields(cls)]

    def switched(self, switches: Iterable[str]) -> Rules:
        """The same rules but for switches such as `lost-answer=off`."""
        changes = {}
        for switch in switches:
            name, _, value = switch.partition("=")
            if name not in self.names():
                raise QueryError(f"there is no rule {short(name)!r}; {choices(name, self.names())}")
            if value not in _SWITCH:
                raise QueryError(
                    f"the rule {name} is on or off, not {short(value)!r}: write {name}=off"
                )
            changes[name.replace("-", "_")] = _SWITCH[value]
        return replace(self, **changes)

    def to_json(self) -> dict[str, bool]:
        """Which rules hold, by their names on the command line."""
        return {_hyphened(name): holds for name, holds in asdict(self).items()}


def _hyphened(name: str) -> str:
    return name.replace("_", "-")


@dataclass(frozen=True, eq=False)
class Missing:
    """The edges that a split adds to the observed graph, to look up what they touch."""

    relations: int  # R; relation r + R is the inverse of r
    pairs: Ints  # head · 2R + relation of each missing edge in both directions, ascending

    @classmethod
    def of(cls, triples: Triples, relations: int) -> Missing:
        head, relation, _ = both_directions(triples, relations).T
        return cls(relations, distinct(head * 2 * relations + relation))

    def promising(self, pattern: Pattern, constants: Ints, relations: Ints, rules: Rules) -> Mask:
        """The queries that may have a hard and a lost answer: all others certainly lack one.

        An answer is hard only if a missing edge makes a positive atom true, and lost only if one
        makes a negated atom true. This is much cheaper to find out than the answers.
        """
        promising = np.ones(len(constants), bool)
        positive, denied = _sides(pattern)
        if any(map(has_negation, (*positive, *denied))):
            return promising  # what is denied twice can become true
        sides = ((rules.hard_answer, positive), (rules.lost_answer, denied))
        for wanted, side in sides:
            atoms = [atom for part in side for atom in literals(part) if isinstance(atom, Atom)]
            if wanted and atoms:
                touched = [self._touched(atom, pattern, constants, relations) for atom in atoms]
                promising &= np.logical_or.reduce(touched)
        return promising

    def _touched(self, atom: Atom, pattern: Pattern, constants: Ints, relations: Ints) -> Mask:
        """The queries in which a missing edge can be an instance of an atom."""
        relation = relations[:, pattern.relations.index(atom.relation)]
        constant, other = atom.terms
        if not isinstance(constant, Constant):
            constant, other = other, constant
            relation = (relation + self.relations) % (2 * self.relations)
        if not isinstance(constant, Constant):
            return self.has_relation[relation]
        entity = constants[:, pattern.constants.index(constant.name)].astype(np.int64)
        keys = entity * (2 * self.relations) + relation
        # np.isin would sort all pairs for each batch of queries.
        first, last = (np.searchsorted(self.pairs, keys, side) for side in ("left", "right"))
        return last > first

    @once
    def has_relation(self) -> Mask:
        """Whether an edge of each relation, also of the inverse ones, is missing, [2R]."""
        return np.bincount(self.pairs % (2 * self.relations), minlength=2 * self.relations) > 0


def negations(pattern: Pattern) -> list[list[Atom]]:
    """The atoms of each negation; none for a formula with a negation inside another part."""
    positive, denied = _sides(pattern)
    if any(map(has_negation, (*positive, *denied))):
        return []
    groups = [[a for a in literals(part) if isinstance(a, Atom)] for part in denied]
    return [atoms for atoms in groups if atoms]


def _sides(pattern: Pattern) -> tuple[list[Formula], list[Formula]]:
    """The parts of a conjunction, or the formula itself: those asserted, and those denied."""
    formula = pattern.formula
    parts = formula.parts if isinstance(formula, And) else (formula,)
    positive: list[Formula] = [part for part in parts if not isinstance(part, Not)]
    return positive, [part.body for part in parts if isinstance(part, Not)]


def rules_of(provenance: Mapping[str, Any]) -> dict[str, bool] | None:
    """The rules that a store records; None if it records none, or something else."""
    recorded = provenance.get("rules")
    if not isinstance(recorded, dict):
        return None
    return {name: bool(recorded.get(name)) for name in Rules.names()}
