"""Hard sets: valid and test queries whose answers are balanced by the missing edges they need.

Most hard answers of BetaE's queries need a single missing edge: a search that knows the graph finds
the rest. Here, answers that need one, two, … missing edges are equally many. Answers beyond that
are filtered, but not ranked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.queries.balance import Balance
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.ground import Edges, Ints, Mask, ground
from lmpnn_kge.queries.patience import Patience
from lmpnn_kge.queries.rules import Rules
from lmpnn_kge.queries.sample import (
    Preset,
    Request,
    Sampler,
    named,
    one_hop_queries,
    unseen,
)
from lmpnn_kge.query.formula import Atom, has_negation
from lmpnn_kge.query.patterns import BETAE, FOUR, Pattern
from lmpnn_kge.work.listener import SILENT, Listener

#: Candidates that are drawn at once: fewer than in BetaE's protocol, because 4p has many answers.
BATCH = 2_000

#: The types of the published hard sets.
TYPES = (*BETAE, *FOUR)


def hard_requests(
    graph: KnowledgeGraph,
    patterns: Mapping[str, Pattern] | None = None,
    count: int | None = None,
    _: Rules | None = None,  # none of them is about how many are wanted
) -> list[Request]:
    """The answers wanted for each number of missing edges: 10,000 for a graph like FB15k-237."""
    fifteenth = 0 if count else one_hop_queries(graph) // 15
    wanted = count or round(fifteenth, -3) or fifteenth
    chosen = named(TYPES) if patterns is None else patterns
    return [
        Request(split, name, pattern, wanted)
        for split in SPLITS[1:]
        for name, pattern in chosen.items()
    ]


def classes_of(pattern: Pattern) -> int:
    """The most missing edges that an answer can need: one for each positive atom of a disjunct."""
    return max(
        sum(isinstance(literal.atom, Atom) and not literal.negated for literal in disjunct.literals)
        for disjunct in pattern.disjuncts
    )


@dataclass(frozen=True, eq=False)
class MissingFirst(Edges):
    """The edges of the full graph, of which the missing ones are drawn more often."""

    missing: Edges
    share: float | npt.NDArray[np.float64] = (
        1.0  # of draws that take a missing edge if there is one
    )

    def start(self, count: int, random: np.random.Generator) -> Ints:
        """Entities with a missing in-edge."""
        return self.missing.ends(count, random)

    def draw(self, target: Ints, random: np.random.Generator) -> tuple[Ints, Ints, Mask]:
        relation, source, exists = super().draw(target, random)
        if not len(self.missing.source):
            return relation, source, exists
        missing = self.missing.draw(target, random)
        chosen = missing[2] & (random.random(len(target)) < self.share)
        return np.where(chosen, missing[0], relation), np.where(chosen, missing[1], source), exists


@dataclass
class HardSampler(Sampler):
    """Draws the queries of hard sets; the count of a request is the quota of each class."""

    def size(self, request: Request) -> int:
        return super().size(request) * classes_of(request.pattern)

    def sample(self, request: Request, listener: Listener = SILENT) -> Queries:
        """Queries with as many hard answers of each class as requested, or as can be found."""
        if request.split not in SPLITS[1:] or request.count is None:
            return super().sample(request, listener)
        if not (classes := classes_of(request.pattern)):
            raise QueryError("no positive atom, so that no answer needs a missing edge")
        random = self._random(request)
        relations = self.graph.num_relations
        balance = Balance(classes, request.count, relations, capped=self.rules.shares)
        edges = self._missing_first(request.split)
        accepted = [self._priced(request, Queries.none(request.pattern))]
        seen = np.zeros(0, np.uint64)
        patience = Patience()
        while len(edges.missing.source) and balance.open and not patience.exhausted:
            drawn = replace(edges, share=_share(request.pattern, balance, random))
            columns = ground(request.pattern, drawn, BATCH, random, self.rules)
            seen, new = unseen(seen, *columns)
            candidates = self._accept(request, *(column[new] for column in columns))
            before = balance.total
            accepted.append(balance.admit(self._priced(request, candidates), random))
            gained = balance.total - before
            patience.count(gained)
            listener.advance(gained, lambda: f"{request.split} {request.name}")
        return Queries.joined(accepted)

    @staticmethod
    def lack(request: Request, queries: Queries) -> str:
        """Which classes have fewer pairs than requested; nothing if none has."""
        if request.count is None or queries.hard.costs is None:
            return Sampler.lack(request, queries)
        pairs = np.bincount(queries.hard.costs, minlength=classes_of(request.pattern) + 1)
        few = [
            f"{found:,} that need {edges}"
            for edges, found in enumerate(pairs[1:].tolist(), 1)
            if found < request.count
        ]
        if not few:
            return ""
        return f"fewer than {request.count:,} answers were found: {', '.join(few)} missing edges"

    def _missing_first(self, split: str) -> MissingFirst:
        return MissingFirst(**vars(self._graph(split)), missing=self._missing_edges(split))


def _share(
    pattern: Pattern, balance: Balance, random: np.random.Generator
) -> float | npt.NDArray[np.float64]:
    """The share of missing edges that suits the classes that are not full."""
    if balance.classes in balance.open:
        # Negated atoms exclude the drawn answer. Another one must need only missing edges, and the
        # drawn one often is the answer that is lost, which needs only observed ones.
        return 0.5 if has_negation(pattern.formula) else 1.0
    return random.choice(balance.open, size=BATCH) / balance.classes


HARD_PRESET = Preset(
    "hard", TYPES, hard_requests, HardSampler, Rules(few_answers=False, shares=True)
)
