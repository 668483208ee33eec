"""Training and evaluation queries for any graph, by BetaE's protocol.

Training queries are answered on the training graph. A valid or test query has at least one hard
answer, which needs an edge that the observed graph lacks; its easy answers are those of both
graphs. A negation must change the answers. Every query is distinct within its split and pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, QueryError
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.formats.libkge import SPLITS
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph, fingerprint
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.ground import Edges, ground
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.query.formula import FREE, And, Formula, Not, Term, terms
from lmpnn_kge.query.patterns import BETAE, Pattern, named_patterns

Ints = npt.NDArray[np.integer[Any]]

#: Candidates that are answered at once: enough to keep DuckDB busy, few enough for any memory.
BATCH = 10_000

#: Answers that a valid or test query may have, as in BetaE.
MAX_ANSWERS = 100

#: Where a store says what graph it was sampled from.
GRAPH = "graph_sha256"

#: Rounds in a row with few new queries after which a pattern is given up.
PATIENCE, FEW = 20, 10

#: BetaE's training patterns; the others appear only in valid and test.
BETAE_POSITIVE = ("1p", "2p", "3p", "2i", "3i")
BETAE_TRAIN = (*BETAE_POSITIVE, "2in", "3in", "inp", "pin", "pni")


@dataclass(frozen=True)
class Request:
    """How many queries of a pattern a split should have; None, for 1p only, is all there are."""

    split: str
    name: str
    pattern: Pattern
    count: int | None


def betae_preset(
    graph: KnowledgeGraph,
    patterns: Mapping[str, Pattern] | None = None,
    count: int | None = None,
) -> list[Request]:
    """BetaE's composition, scaled to a graph; other patterns and another count if given.

    As many training queries of each positive type as there are 1p queries, a tenth of that for all
    other types, and about a thirtieth of each type, in whole thousands, for valid and test.
    """
    triples, level = graph.edges
    whole = len(one_hop(triples[level == 0], graph.num_relations))
    held_out = round(whole // 30, -3) or whole // 30
    requests = []
    for split in SPLITS:
        for name, pattern in (patterns or named(BETAE)).items():
            if split == "train" and name in BETAE and name not in BETAE_TRAIN:
                continue
            counts = {"train": whole if name in BETAE_POSITIVE else whole // 10}
            wanted = count if count is not None else counts.get(split, held_out)
            every = name == "1p" and count is None
            requests.append(Request(split, name, pattern, None if every else wanted))
    return requests


def named(names: Iterable[str]) -> dict[str, Pattern]:
    """Built-in patterns by name."""
    patterns = named_patterns()
    return {name: patterns[name] for name in names}


def one_hop(triples: Ints, relations: int) -> Ints:
    """Every (head, relation) that has an edge, in both directions, as head · 2R + relation."""
    s, p, o = triples.T
    return np.unique(np.concatenate([s * 2 * relations + p, o * 2 * relations + p + relations]))


@dataclass
class Sampler:
    """Draws queries of a graph; the same seed gives the same queries."""

    graph: KnowledgeGraph
    seed: int = 0
    max_answers: int = MAX_ANSWERS
    _edges: dict[str, Edges] = field(default_factory=dict)

    def sample(
        self, request: Request, progress: Callable[[int], object] = lambda done: None
    ) -> Queries:
        """As many distinct queries as asked for, or as many as can be found."""
        seed = [self.seed, SPLITS.index(request.split), *request.name.encode()]
        random = np.random.default_rng(seed)
        if request.count is None:
            return self._priced(request, self._accept(request, *self._all_one_hop(request.split)))
        found = [self._accept(request, *self._none(request.pattern))]
        seen = _fingerprints(*self._none(request.pattern))
        idle = 0
        while _total(found) < request.count and idle < PATIENCE:
            constants, relations = ground(
                request.pattern, self._graph(request.split), BATCH, random
            )
            rows = np.concatenate([seen, _fingerprints(constants, relations)])
            rows, first = np.unique(rows, return_index=True)
            new = np.sort(first[first >= len(seen)]) - len(seen)
            seen = rows
            accepted = self._accept(request, constants[new], relations[new])
            idle = 0 if len(accepted) >= FEW else idle + 1
            found.append(accepted)
            progress(min(request.count, _total(found)))
        queries = Queries.joined(found)
        return self._priced(request, queries.select(np.arange(len(queries)) < request.count))

    def _priced(self, request: Request, queries: Queries) -> Queries:
        """With the number of missing edges that each hard answer needs."""
        if request.split == "train":
            return queries
        observed = SPLITS[SPLITS.index(request.split) - 1]
        parts = [
            self.graph.database.missing_edges(
                request.pattern,
                queries.constants[i : i + BATCH],
                queries.relations[i : i + BATCH],
                observed,
                request.split,
            )
            for i in range(0, max(1, len(queries)), BATCH)
        ]
        _, hard = split_answers(Answers.joined(parts), queries.easy, len(self.graph.entity_ids))
        return replace(queries, hard=hard)

    def _graph(self, split: str) -> Edges:
        if split not in self._edges:
            triples, level = self.graph.edges
            known = triples[level <= SPLITS.index(split)]
            if not len(known):
                raise DatasetError(f"{self.graph.folder} has no {split} triples to sample from")
            entities, relations = len(self.graph.entity_ids), self.graph.num_relations
            self._edges[split] = Edges.of(known, entities, relations)
        return self._edges[split]

    def _none(self, pattern: Pattern) -> tuple[Ints, Ints]:
        return (
            np.zeros((0, len(pattern.constants)), np.int64),
            np.zeros((0, len(pattern.relations)), np.int64),
        )

    def _all_one_hop(self, split: str) -> tuple[Ints, Ints]:
        """Every (head, relation) that has an edge of the split itself."""
        triples, level = self.graph.edges
        keys = one_hop(triples[level == SPLITS.index(split)], self.graph.num_relations)
        head, relation = np.divmod(keys, 2 * self.graph.num_relations)
        return head[:, None], relation[:, None]

    def _accept(self, request: Request, constants: Ints, relations: Ints) -> Queries:
        """The candidates that keep to the rules, with their answers; in batches."""
        parts = [
            self._accept_batch(request, constants[i : i + BATCH], relations[i : i + BATCH])
            for i in range(0, max(1, len(constants)), BATCH)
        ]
        return Queries.joined(parts)

    def _accept_batch(self, request: Request, constants: Ints, relations: Ints) -> Queries:
        database, pattern, split = self.graph.database, request.pattern, request.split
        full = database.answer(pattern, constants, relations, split)
        keep = full.counts > 0
        if split != "train" and request.count is not None:
            keep &= full.counts <= self.max_answers
        relaxed = _without_negations(pattern)
        if relaxed is not None:
            loose = database.answer(
                relaxed,
                constants[:, _places(pattern.constants, relaxed.constants)],
                relations[:, _places(pattern.relations, relaxed.relations)],
                split,
            )
            keep &= loose.counts > full.counts
        easy, hard = full, Answers.none(len(full))
        if split != "train":
            observed = SPLITS[SPLITS.index(split) - 1]
            known = database.answer(pattern, constants, relations, observed)
            easy, hard = split_answers(full, known, len(self.graph.entity_ids))
            keep &= hard.counts > 0
        candidates = constants.astype(np.int32), relations.astype(np.int32)
        return Queries(pattern, *candidates, easy, hard).select(keep)


def sample_all(
    graph: KnowledgeGraph,
    requests: list[Request],
    seed: int = 0,
    progress: Callable[[Request, int], object] = lambda request, done: None,
) -> Mapping[str, Mapping[str, Queries]]:
    """All requests, by split and name."""
    sampler = Sampler(graph, seed)
    splits: dict[str, dict[str, Queries]] = {}
    for request in requests:
        queries = sampler.sample(request, partial(progress, request))
        progress(request, len(queries))
        splits.setdefault(request.split, {})[request.name] = queries
    return splits


def sample_store(
    graph: KnowledgeGraph,
    folder: str | Path,
    requests: list[Request] | None = None,
    seed: int = 0,
    provenance: Mapping[str, Any] | None = None,
    progress: Callable[[Request, int], object] = lambda request, done: None,
) -> QueryStore:
    """Sample and write a query store; without requests, BetaE's composition."""
    splits = sample_all(graph, requests or betae_preset(graph), seed, progress)
    if not any(len(queries) for found in splits.values() for queries in found.values()):
        raise QueryError(f"{graph.folder} has no queries of these types; nothing was written")
    made = {
        "made_by": f"lmpnn-kge {version('lmpnn-kge')}",
        "preset": "betae",
        "seed": seed,
        GRAPH: fingerprint(graph),
    }
    store = QueryStore(
        graph.name, graph.entity_ids, graph.relation_ids, splits, {**made, **(provenance or {})}
    )
    return write_store(folder, store)


def split_answers(full: Answers, observed: Answers, entities: int) -> tuple[Answers, Answers]:
    """Easy answers, which the observed graph has too, and hard ones, which it has not."""
    keys = full.owners * entities + full.values
    known = observed.owners * entities + observed.values
    place = np.minimum(np.searchsorted(known, keys), max(0, len(known) - 1))
    is_known = known[place] == keys if len(known) else np.zeros(len(keys), bool)
    return full.only(is_known), full.only(~is_known)


def _fingerprints(constants: Ints, relations: Ints) -> npt.NDArray[np.uint64]:
    """Each query as one number; that two share one is too rare to care, and only leaves one out."""
    mixed = np.zeros(len(constants), np.uint64)
    for column in (*constants.T, *relations.T):
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _places(names: list[str], wanted: list[str]) -> list[int]:
    return [names.index(name) for name in wanted]


def _without_negations(pattern: Pattern) -> Pattern | None:
    """The part of a pattern that is about its answer before anything is denied, if that differs."""
    formula = pattern.formula
    parts = formula.parts if isinstance(formula, And) else (formula,)
    left = [part for part in parts if not isinstance(part, Not)]
    if len(left) in (0, len(parts)):
        return None
    # What a negation alone connected to the answer no longer says anything about it.
    about: list[Formula] = []
    reached: set[Term] = {FREE}
    while touching := [part for part in left if not reached.isdisjoint(terms(part))]:
        about += touching
        reached.update(term for part in touching for term in terms(part))
        left = [part for part in left if part not in touching]
    if not about:
        return None
    return Pattern(And(tuple(about)) if len(about) > 1 else about[0])


def _total(parts: list[Queries]) -> int:
    return sum(map(len, parts))
