"""A graph at a glance: its size, its relations, how it is connected, and what it lacks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lmpnn_kge.errors import printable
from lmpnn_kge.notebook import data_frame, html_paragraphs, html_table, html_text

#: The columns of a terminal, unless its user changed them.
WIDTH = 80

#: Relations and rules that are shown unless more are wanted.
SHOWN = 10


@dataclass(frozen=True)
class Named:
    """An entity or a relation; count is its number of triples where it is counted."""

    id: str
    label: str | None = None
    count: int | None = None

    def __str__(self) -> str:
        return self.label or self.id


@dataclass(frozen=True)
class RelationProfile:
    """A relation over all splits; samples have the most frequent heads and tails."""

    relation: Named
    splits: Mapping[str, int]  # triples
    heads: int  # different ones
    tails: int
    tails_per_head: float
    heads_per_tail: float
    example: tuple[Named, Named] | None  # a head and a tail
    head_sample: tuple[Named, ...]
    tail_sample: tuple[Named, ...]

    @property
    def triples(self) -> int:
        return self.relation.count or 0


@dataclass(frozen=True)
class Rule:
    """premise(x, y) → conclusion(x, y), or conclusion(y, x) if it is inverse."""

    premise: Named
    conclusion: Named
    inverse: bool
    shared: int  # pairs for which both hold
    pairs: int  # pairs of the premise
    in_test: int  # test triples that follow by it from a training triple

    def __str__(self) -> str:
        return f"{self.premise}(x, y) → {self.conclusion}({'y, x' if self.inverse else 'x, y'})"


@dataclass(frozen=True, repr=False)
class GraphProfile:
    """What was found in a graph; the relations with most triples come first."""

    name: str
    entities: int
    triples: int  # different ones
    splits: Mapping[str, int]
    relations: tuple[RelationProfile, ...]
    labelled_entities: int
    degree: Mapping[str, float]  # median, mean and maximum
    hub: Named | None  # an entity of the maximum degree
    components: tuple[int, ...]  # entities in each, the largest first
    isolated: int  # entities without any triple
    unseen_entities: int  # entities of valid and test triples without a training triple
    unseen_relations: int
    unseen_triples: int  # valid and test triples with one of these
    repeated_triples: int  # in several splits, or several times in one
    rules: tuple[Rule, ...]
    leaked: int  # test triples that follow by a rule from a training triple

    @property
    def missing(self) -> tuple[str, ...]:
        """What to know before training, a sentence for each."""
        return tuple(_missing(self))

    def to_json(self) -> dict[str, Any]:
        """Everything as `lmpnn-kge graph --json` prints it."""
        return asdict(self) | {"missing": self.missing}

    def to_text(self, most: int = SHOWN) -> str:
        """A page of 80 columns, with the largest relations and the rules that leak most."""
        return "\n".join(_lines(self, most))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"GraphProfile({self.name}: {_size(self)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the largest relations."""
        return _html(self)

    def to_frame(self) -> Any:
        """The relations as a DataFrame (needs pandas)."""
        counts = ("triples", "heads", "tails", "tails_per_head", "heads_per_tail")
        names = {"relation": [profile.relation.id for profile in self.relations]}
        if any(profile.relation.label is not None for profile in self.relations):
            names["label"] = [str(profile.relation) for profile in self.relations]
        return data_frame(names | {n: [getattr(p, n) for p in self.relations] for n in counts})


def _missing(graph: GraphProfile) -> Iterator[str]:
    for split, count in graph.splits.items():
        if not count:
            yield f"There are no {split} triples; `lmpnn-kge split` holds some out."
    if graph.isolated:
        yield f"{_entities(graph.isolated)} without any triple."
    if graph.unseen_triples:
        names = (
            f"{_entities(graph.unseen_entities)} and {_many(graph.unseen_relations, 'relation')}"
        )
        triples = _many(graph.unseen_triples, "triple")
        yield f"{names} of valid and test without a training triple, in {triples}."
    if graph.repeated_triples:
        repeated = _many(graph.repeated_triples, "repeated triple")
        yield f"{repeated}, in one split or in several."
    if graph.leaked:
        leaked = f"{_many(graph.leaked, 'test triple')} ({graph.leaked / graph.splits['test']:.1%})"
        yield (
            f"{leaked} {'follows' if graph.leaked == 1 else 'follow'} from a training triple, "
            "because relations repeat or invert each other (see below)."
        )


def _entities(count: int) -> str:
    return "1 entity" if count == 1 else f"{count:,} entities"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _size(graph: GraphProfile) -> str:
    relations, triples = _many(len(graph.relations), "relation"), _many(graph.triples, "triple")
    return f"{_entities(graph.entities)}, {relations}, {triples}"


def _html(graph: GraphProfile) -> str:
    rows = [
        [str(profile.relation), f"{profile.triples:,}", f"{profile.heads:,}", f"{profile.tails:,}",
         " → ".join(map(str, profile.example or ()))]
        for profile in graph.relations[:SHOWN]
    ]  # fmt: skip
    return "".join([
        f"<p><b>{html_text(graph.name)}</b>: {html_text(_size(graph))}</p>",
        html_paragraphs(graph.missing),
        html_table(["relation", "triples", "heads", "tails", "example"], rows),
    ])  # fmt: skip


def _lines(graph: GraphProfile, most: int) -> Iterator[str]:
    yield f"{_cut(graph.name, 30)}: {_size(graph)}"
    yield from _facts(graph)
    for sentence in graph.missing:
        yield from textwrap.wrap(f"! {sentence}", WIDTH, subsequent_indent="  ")
    for profile in graph.relations[:most]:
        yield ""
        yield from _relation(profile)
    yield from _more("relations", graph.relations, most)
    if graph.rules:
        yield from ["", "Relations that repeat or invert others:"]
        for rule in graph.rules[:most]:
            yield from _rule(rule)
        yield from _more("of them", graph.rules, most)


def _facts(graph: GraphProfile) -> Iterator[str]:
    splits = ", ".join(f"{count:,} {split}" for split, count in graph.splits.items())
    yield f"  splits      {splits}"
    median, mean, maximum = graph.degree.values()
    hub = "" if graph.hub is None else f" ({_cut(str(graph.hub), 26)})"
    yield f"  degree      median {median:g}, mean {mean:.1f}, at most {maximum:,.0f}{hub}"
    if graph.components:
        largest = graph.components[0]
        share = f"{largest / graph.entities:.1%}"
        yield (
            f"  components  {len(graph.components):,}, the largest with {_entities(largest)} "
            f"({share})"
        )
    if graph.labelled_entities:
        yield f"  labels      {_entities(graph.labelled_entities)}"


def _relation(profile: RelationProfile) -> Iterator[str]:
    yield _cut(str(profile.relation), WIDTH)
    counts = (
        f"{_many(profile.triples, 'triple')}, {_many(profile.heads, 'head')} "
        f"({profile.tails_per_head:.1f} tails each), {_many(profile.tails, 'tail')} "
        f"({profile.heads_per_tail:.1f} heads each)"
    )
    yield from textwrap.wrap(counts, WIDTH, initial_indent="  ", subsequent_indent="  ")
    if profile.example is not None:
        yield f"  example  {' → '.join(_cut(str(entity), 33) for entity in profile.example)}"
        yield f"  heads    {_sample(profile.head_sample, profile.heads)}"
        yield f"  tails    {_sample(profile.tail_sample, profile.tails)}"


def _sample(entities: Sequence[Named], every: int) -> str:
    """Entities with their counts, cut until they fit a line."""
    rest = ", …" if every > len(entities) else ""
    for width in range(WIDTH, 10, -1):
        line = ", ".join(f"{_cut(str(entity), width)} ({entity.count:,})" for entity in entities)
        if len(line + rest) <= WIDTH - 11:
            break
    return line + rest


def _rule(rule: Rule) -> Iterator[str]:
    premise, _, conclusion = str(rule).rpartition(" → ")
    yield f"  {_cut(premise, WIDTH - 2)}"
    yield f"  → {_cut(conclusion, WIDTH - 4)}"
    share = f"{rule.shared / rule.pairs:.1%}"
    yield (
        f"    {rule.shared:,} of {rule.pairs:,} pairs ({share}); "
        f"{rule.in_test:,} test triples follow"
    )


def _more(what: str, items: Sequence[object], most: int) -> Iterator[str]:
    if len(items) > most:
        yield from ["", f"… and {len(items) - most:,} more {what} (-n N shows N, --json all)"]


def _cut(text: str, width: int) -> str:
    """Text of at most so many columns; the middle of a long one is left out, not its ends."""
    text = printable(text)
    if len(text) <= width:
        return text
    begin = (width - 1) // 3
    return f"{text[:begin]}…{text[len(text) - (width - 1 - begin) :]}"
