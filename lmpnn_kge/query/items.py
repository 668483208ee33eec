"""What a step of a statement joins: literals and results of earlier steps, by their variables."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lmpnn_kge.query.formula import Constant, Equal, Variable
from lmpnn_kge.query.normal_form import SignedAtom


@dataclass(frozen=True)
class Factor:
    """An intermediate result: a table with the columns q and some variables."""

    table: str
    variables: tuple[Variable, ...]
    negated: bool = False


@dataclass(frozen=True)
class Exists:
    """A positive atom that only restricts one variable: its other one occurs nowhere else."""

    literal: SignedAtom
    variable: Variable


Item = SignedAtom | Factor | Exists


def variables_of(item: Item) -> tuple[Variable, ...]:
    if isinstance(item, Factor):
        return item.variables
    if isinstance(item, Exists):
        return (item.variable,)
    return tuple(dict.fromkeys(term for term in item.terms if isinstance(term, Variable)))


def all_variables(items: Iterable[Item]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(variable for item in items for variable in variables_of(item)))


def is_positive(item: Item) -> bool:
    """Whether an item binds its variables; other items only restrict bound ones."""
    if isinstance(item, Exists) or (isinstance(item, SignedAtom) and isinstance(item.atom, Equal)):
        return False
    return not item.negated


def is_grounded(item: Item) -> bool:
    """Whether an item yields few bindings: it has a constant, or is the result of a step."""
    if not is_positive(item):
        return False
    return not isinstance(item, SignedAtom) or any(isinstance(t, Constant) for t in item.terms)


def join_order(items: Sequence[Item], first: Item | None = None) -> Iterator[Item]:
    """Items in the order to join them in, which begins with the first if there is one.

    The next item is always the one that adds the fewest new variables, so that constants and bound
    variables filter early.
    """
    new = [set(variables_of(item)) for item in items]
    having: dict[Variable, list[int]] = {}
    for position, variables in enumerate(new):
        for variable in variables:
            having.setdefault(variable, []).append(position)
    waiting = [(item is not first, len(new[n]), n) for n, item in enumerate(items)]
    heapq.heapify(waiting)
    joined: set[int] = set()
    while waiting:
        _, _, position = heapq.heappop(waiting)
        if position in joined:  # it was waiting in several places, of which this is a later one
            continue
        joined.add(position)
        yield items[position]
        for variable in tuple(new[position]):
            for other in having.pop(variable):
                new[other].discard(variable)
                heapq.heappush(waiting, (items[other] is not first, len(new[other]), other))


class Incidence:
    """The items that are left, in their order, and which of them mention a variable.

    With it, the elimination of a variable looks only at the items that mention it or a neighbour.
    """

    def __init__(self, items: Iterable[Item]):
        self._items: dict[int, Item] = {}  # by number, ascending
        self._numbers: dict[Variable | None, dict[int, None]] = {}  # None: without a variable
        self._near: dict[Variable, Counter[Variable]] = {}  # how many items have both variables
        self._grounded: Counter[Variable] = Counter()  # how many grounded items have a variable
        self._next = 0
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        """Add an item behind all others."""
        self._insert(self._next, item)
        self._next += 1

    def having(self, variable: Variable) -> list[Item]:
        """The items that mention a variable."""
        return [self._items[number] for number in sorted(self._numbers.get(variable, ()))]

    def effort(self, variable: Variable) -> tuple[int, bool]:
        """The cost of eliminating a variable: few other variables first, then grounded ones."""
        return len(self._near.get(variable, ())), not self._grounded[variable]

    def replace_only(self, variable: Variable, item: Item) -> None:
        """Put an item in the place of the only one that mentions a variable."""
        (number,) = self._numbers[variable]
        self._remove(number)
        self._insert(number, item)

    def take_with(self, variable: Variable) -> list[Item]:
        """Remove the items that mention a variable."""
        return [self._remove(number) for number in sorted(self._numbers.get(variable, ()))]

    def take_grounded(self, variables: Iterable[Variable]) -> list[Item]:
        """Remove the grounded items that mention no other variables than these."""
        allowed = set(variables)
        numbers = {n for key in (*allowed, None) for n in self._numbers.get(key, ())}
        return [
            self._remove(number)
            for number in sorted(numbers)
            if is_grounded(self._items[number])
            and allowed.issuperset(variables_of(self._items[number]))
        ]

    def take_binding(self, unbound: Iterable[Variable], others: Iterable[Variable]) -> list[Item]:
        """Remove a positive item for each variable, if it is about these and others alone."""
        allowed, taken = {*unbound, *others}, []
        for variable in unbound:
            for number in sorted(self._numbers.get(variable, ())):
                item = self._items[number]
                if is_positive(item) and allowed.issuperset(variables_of(item)):
                    taken.append(self._remove(number))
                    break
        return taken

    def rest(self) -> list[Item]:
        """All items that are left."""
        return [self._items[number] for number in sorted(self._items)]

    def _insert(self, number: int, item: Item) -> None:
        self._items[number] = item
        for key in variables_of(item) or (None,):
            self._numbers.setdefault(key, {})[number] = None
        self._count(item, 1)

    def _remove(self, number: int) -> Item:
        item = self._items.pop(number)
        for key in variables_of(item) or (None,):
            del self._numbers[key][number]
        self._count(item, -1)
        return item

    def _count(self, item: Item, step: int) -> None:
        variables = variables_of(item)
        for variable in variables:
            self._grounded[variable] += step * is_grounded(item)
            near = self._near.setdefault(variable, Counter())
            for other in variables:
                near[other] += step
                if not near[other]:
                    del near[other]
