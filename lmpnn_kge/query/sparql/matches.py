"""Matches: a conjunct is one way in which a pattern can match, and several are a disjunction.

The variables that a match gives values to are known exactly, because nothing is optional: `bound`
has them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import reduce

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import Equal, Term
from lmpnn_kge.query.normal_form import MAX_DISJUNCTS, Conjunct, SignedAtom

Matches = list[Conjunct]


def any_of(matches: Iterable[Conjunct]) -> Matches:
    """All matches; QueryError if there are more than a formula may have disjuncts."""
    few = list(itertools.islice(matches, MAX_DISJUNCTS + 1))
    if len(few) > MAX_DISJUNCTS:
        raise QueryError(f"the SPARQL query expands to more than {MAX_DISJUNCTS} disjuncts")
    return few


def all_of(patterns: Iterable[Matches]) -> Matches:
    """The ways in which all patterns match at once."""
    return reduce(joined, patterns, [Conjunct()])


def joined(left: Matches, right: Matches) -> Matches:
    """The ways in which two patterns match at once."""
    return any_of(join(one, other) for one in left for other in right)


def join(one: Conjunct, other: Conjunct) -> Conjunct:
    return Conjunct(
        tuple(dict.fromkeys(one.literals + other.literals)),
        tuple(dict.fromkeys(one.groups + other.groups)),
        tuple(dict.fromkeys(one.bound + other.bound)),
    )


def compared(left: Term | None, right: Term | None, *, equal: bool) -> Matches:
    """The ways in which terms are equal, or differ; none if one of them has no value."""
    if left is None or right is None:
        return []
    return [Conjunct((SignedAtom(Equal(left, right), not equal),))]
