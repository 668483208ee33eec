"""What is in the picture of a conjunct: terms, literals between them, and denied groups."""

from __future__ import annotations

from dataclasses import dataclass

from lmpnn_kge.query.formula import FREE, Constant, Term, Variable
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, scoped


@dataclass(frozen=True)
class Place:
    """A term; frame is the number of the group that it belongs to, None if it is in none."""

    term: Term
    frame: int | None


@dataclass(frozen=True)
class Link:
    """A literal between two numbered places, with the sign that it has inside its group."""

    literal: SignedAtom
    head: int
    tail: int
    frame: int | None


@dataclass(frozen=True)
class Group:
    """A group that is denied as a whole, and the number of the group that it is in."""

    conjunct: Conjunct
    parent: int | None


@dataclass(frozen=True)
class Diagram:
    """A conjunct in numbers. The first places are free, and a group comes before those in it."""

    places: tuple[Place, ...]
    links: tuple[Link, ...]
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, conjunct: Conjunct) -> Diagram:
        """Each occurrence of a constant is a place of its own, so that fewer lines cross."""
        free = conjunct.free or (FREE,)  # a question that is being made has no `?` yet
        places, links, groups = [Place(variable, None) for variable in free], [], []
        numbers: dict[Term, int] = {variable: number for number, variable in enumerate(free)}

        def place(term: Term, frame: int | None) -> int:
            if term not in numbers or isinstance(term, Constant):
                numbers[term] = len(places)
                places.append(Place(term, frame))
            return numbers[term]

        def add(part: Conjunct, frame: int | None) -> None:
            for variable in part.bound:
                place(variable, frame)
            for literal in part.literals:
                head, tail = (place(term, frame) for term in literal.terms)
                links.append(Link(literal, head, tail, frame))
            for group in part.groups:
                groups.append(Group(group, frame))
                add(group, len(groups) - 1)

        add(scoped(conjunct), None)
        return cls(tuple(places), tuple(links), tuple(groups))

    @property
    def columns(self) -> list[int]:
        """For each place, its distance from what is asked; the ends of a link differ by at most 1.

        A part that only a constant connects to the others begins where that constant is.
        """
        near: list[list[int]] = [[] for _ in self.places]
        for link in self.links:
            near[link.head].append(link.tail)
            near[link.tail].append(link.head)
        frontier = [
            number
            for number, place in enumerate(self.places)
            if isinstance(place.term, Variable) and place.term.is_free
        ]
        columns = dict.fromkeys(frontier, 0)
        while len(columns) < len(self.places):
            if not frontier:
                frontier = [self._connected_by_name(columns)]
            reached: list[int] = []
            for number in frontier:
                new = [other for other in near[number] if other not in columns]
                columns |= dict.fromkeys(new, columns[number] + 1)
                reached += new
            frontier = reached
        return [columns[number] for number in range(len(self.places))]

    def _connected_by_name(self, columns: dict[int, int]) -> int:
        """Add a place that has no column to a constant's column, and return its number."""
        known = {self.places[number].term: column for number, column in columns.items()}
        for number, place in enumerate(self.places):
            if number not in columns and place.term in known:
                columns[number] = known[place.term]
                return number
        raise AssertionError("normalise refuses a conjunct that is not connected to ?")
