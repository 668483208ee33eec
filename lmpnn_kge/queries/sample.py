"""Training and evaluation queries for any graph, by BetaE's protocol.

Training queries are answered on the training graph. The hard answers of a valid or test query need
an edge that the observed graph lacks; its easy answers are those that it has in both graphs.
`Rules` has what a query must satisfy. No query occurs twice in its split and pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, QueryError
from lmpnn_kge.graph.answers import Answers, Int64s, Mask, split_answers
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS, Triples, both_directions, distinct
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.ground import Edges, ground
from lmpnn_kge.queries.patience import Patience
from lmpnn_kge.queries.rules import Missing, Rules, negations
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.query.formula import And, Atom, Not, conjunction, connected_to, has_negation
from lmpnn_kge.query.patterns import BETAE, Pattern, named_patterns
from lmpnn_kge.work.deadline import time_limit
from lmpnn_kge.work.listener import SILENT, Listener

Ints = npt.NDArray[np.integer[Any]]

#: Candidates that are answered at once: enough to keep DuckDB busy, few enough for the memory.
BATCH = 10_000

#: The most answers that a valid or test query may have, as in BetaE.
MAX_ANSWERS = 100

#: The most tuples that a query with several free variables may have without the rule `few_answers`,
#: and how many such queries are answered at once: a query can have millions.
MAX_TUPLES, TUPLE_BATCH = 1_000, 1_000

#: The key in a store's provenance for the hash of the graph that it was sampled from.
GRAPH = "graph_sha256"

#: BetaE's training patterns; the others occur only in valid and test.
BETAE_POSITIVE = ("1p", "2p", "3p", "2i", "3i")
BETAE_TRAIN = (*BETAE_POSITIVE, "2in", "3in", "inp", "pin", "pni")


@dataclass(frozen=True)
class Request:
    """The number of queries of a pattern that a split should have."""

    split: str
    name: str
    pattern: Pattern
    count: int | None  # None, for 1p only: all queries that exist


def betae_preset(
    graph: KnowledgeGraph,
    patterns: Mapping[str, Pattern] | None = None,
    count: int | None = None,
    rules: Rules | None = None,
) -> list[Request]:
    """BetaE's composition, scaled to a graph; with other patterns or another count if given.

    Train has all 1p queries, as many queries of each other positive type, and a tenth of that of
    all other types; the rule `zero_shot` leaves those out that BetaE does not train on. Valid and
    test have about a thirtieth of each type, rounded to thousands.
    """
    most = count if count is not None else one_hop_queries(graph)
    held_out = round(most // 30, -3) or most // 30
    chosen = named(BETAE) if patterns is None else patterns
    left_out = set(BETAE).difference(BETAE_TRAIN) if (rules or Rules()).zero_shot else ()
    requests = []
    for split in SPLITS:
        for name, pattern in chosen.items():
            if split == "train" and name in left_out:
                continue
            counts = {"train": most if name in BETAE_POSITIVE else most // 10}
            wanted = count if count is not None else counts.get(split, held_out)
            every = name == "1p" and count is None
            requests.append(Request(split, name, pattern, None if every else wanted))
    return requests


def one_hop_queries(graph: KnowledgeGraph) -> int:
    """The number of 1p queries of the training graph."""
    triples, level = graph.edges
    return len(one_hop(triples[level == 0], graph.num_relations))


def named(names: Iterable[str]) -> dict[str, Pattern]:
    """Built-in patterns by name."""
    patterns = named_patterns()
    return {name: patterns[name] for name in names}


def one_hop(triples: Ints, relations: int) -> Ints:
    """All 1p queries, each (head, relation) that has an edge, as head · 2R + relation."""
    head, relation, _ = both_directions(triples, relations).T
    return distinct(head * 2 * relations + relation)


@dataclass
class Sampler:
    """Draws queries of a graph; the same seed gives the same queries."""

    graph: KnowledgeGraph
    seed: int = 0
    max_answers: int = MAX_ANSWERS
    timeout: float | None = None  # seconds for a batch
    rules: Rules = field(default_factory=Rules)
    _edges: dict[str, Edges] = field(default_factory=dict)
    _missing: dict[str, Missing] = field(default_factory=dict)
    _held_out: dict[str, Edges] = field(default_factory=dict)

    def size(self, request: Request) -> int:
        """The number of steps in which the progress of a request is reported."""
        return request.count or 0

    def sample(self, request: Request, listener: Listener = SILENT) -> Queries:
        """As many distinct queries as requested, or as many as can be found."""
        random = self._random(request)
        if request.count is None:
            return self._priced(request, self._accept(request, *self._all_one_hop(request.split)))
        accepted = [Queries.none(request.pattern)]
        seen = np.zeros(0, np.uint64)
        patience = Patience()
        denied: list[list[Atom]] = []
        while _total(accepted) < request.count:
            if patience.scarce and not denied and (denied := self._negations(request)):
                patience = Patience()
            elif patience.exhausted:
                break
            constants, relations = self._candidates(request, denied, random)
            seen, new = unseen(seen, constants, relations)
            accepted.append(self._accept(request, constants[new], relations[new]))
            patience.count(len(accepted[-1]))
            done, before = _total(accepted), _total(accepted[:-1])
            steps = min(done, request.count) - min(before, request.count)
            listener.advance(steps, lambda: f"{request.split} {request.name}")
        queries = Queries.joined(accepted)
        return self._priced(request, queries.select(np.arange(len(queries)) < request.count))

    @staticmethod
    def lack(request: Request, queries: Queries) -> str:
        """How many queries of a request were not found; nothing if all were."""
        if request.count is None or len(queries) >= request.count:
            return ""
        return f"only {len(queries)} of {request.count} were found"

    def _random(self, request: Request) -> np.random.Generator:
        seed = [self.seed, SPLITS.index(request.split), *request.name.encode()]
        return np.random.default_rng(seed)

    def _candidates(
        self, request: Request, denied: list[list[Atom]], random: np.random.Generator
    ) -> tuple[Ints, Ints]:
        """Random queries: constants and relations.

        One atom of each negation in `denied` is filled with a missing edge. What it excludes is an
        answer on the observed graph, unless another edge is missing for that.
        """
        edges = self._graph(request.split)
        chosen = [atoms[random.integers(len(atoms))] for atoms in denied]
        apart = {atom: self._missing_edges(request.split) for atom in chosen}
        return ground(request.pattern, edges, BATCH, random, self.rules, apart)

    def _negations(self, request: Request) -> list[list[Atom]]:
        """The atoms of each negation that has to exclude an observed answer."""
        if request.split == "train" or not self.rules.lost_answer:
            return []
        return negations(request.pattern) if len(self._missing_of(request.split).pairs) else []

    def _promising(self, request: Request, constants: Ints, relations: Ints) -> Mask:
        """The candidates that are worth answering."""
        if request.split == "train":
            return np.ones(len(constants), bool)
        missing = self._missing_of(request.split)
        return missing.promising(request.pattern, constants, relations, self.rules)

    def _missing_of(self, split: str) -> Missing:
        """What the edges touch that are missing when the queries of a split are asked."""
        if split not in self._missing:
            self._missing[split] = Missing.of(self._own(split), self.graph.num_relations)
        return self._missing[split]

    def _missing_edges(self, split: str) -> Edges:
        """The edges that are missing when the queries of a split are asked."""
        if split not in self._held_out:
            entities, relations = len(self.graph.entity_ids), self.graph.num_relations
            edges = Edges.of(self._own(split), entities, relations)
            self._held_out = {split: edges}  # one split at a time
        return self._held_out[split]

    def _own(self, split: str) -> Triples:
        """The triples that a split adds."""
        triples, level = self.graph.edges
        return triples[level == SPLITS.index(split)]

    def _excluding(self, request: Request, queries: Queries, counts: Int64s) -> Mask:
        """The queries whose negations exclude an entity that would answer without them.

        counts [n] has the numbers of their answers.
        """
        pattern, split = request.pattern, request.split
        relaxed = _without_negations(pattern) if self.rules.excluding else None
        lost = split != "train" and self.rules.lost_answer
        # A lost answer would answer without the negations, unless there are others inside.
        if relaxed is None or (lost and not has_negation(relaxed.formula)):
            return np.ones(len(queries), bool)
        loose = self.graph.database.answer(
            relaxed,
            queries.constants[:, [pattern.constants.index(name) for name in relaxed.constants]],
            queries.relations[:, [pattern.relations.index(name) for name in relaxed.relations]],
            split,
            limit=1 + int(counts.max(initial=0)),
        )
        return loose.counts > counts

    def _priced(self, request: Request, queries: Queries) -> Queries:
        """The same queries, with the number of missing edges that each hard answer needs."""
        if request.split == "train":
            return queries
        parts = []
        for i in range(0, len(queries), BATCH):
            columns = queries.constants[i : i + BATCH], queries.relations[i : i + BATCH]
            with time_limit(self.timeout):
                parts.append(
                    self.graph.database.missing_edges(
                        request.pattern, *columns, _before(request.split), request.split
                    )
                )
        none = Answers.none(0, len(request.pattern.free))
        full = Answers.joined([replace(none, costs=np.zeros(0, np.int32)), *parts])
        _, hard = split_answers(full, queries.easy)
        return replace(queries, hard=hard)

    def _graph(self, split: str) -> Edges:
        """The edges that a split knows."""
        if split not in self._edges:
            triples, level = self.graph.edges
            known = triples[level <= SPLITS.index(split)]
            if not len(known):
                raise DatasetError(f"{self.graph.folder} has no {split} triples to sample from")
            entities, relations = len(self.graph.entity_ids), self.graph.num_relations
            self._edges = {split: Edges.of(known, entities, relations)}  # one split at a time
        return self._edges[split]

    def _all_one_hop(self, split: str) -> tuple[Ints, Ints]:
        """The 1p queries that an edge of the split itself answers: constants and relations."""
        keys = one_hop(self._own(split), self.graph.num_relations)
        head, relation = np.divmod(keys, 2 * self.graph.num_relations)
        return head[:, None], relation[:, None]

    def _accept(self, request: Request, constants: Ints, relations: Ints) -> Queries:
        """The candidates that keep to the rules, with their answers."""
        promising = self._promising(request, constants, relations)
        constants, relations = constants[promising], relations[promising]
        parts = []
        size = BATCH if len(request.pattern.free) == 1 else TUPLE_BATCH
        for i in range(0, len(constants), size):
            columns = constants[i : i + size], relations[i : i + size]
            with time_limit(self.timeout):
                parts.append(self._accept_batch(request, *columns))
        return Queries.joined([Queries.none(request.pattern), *parts])

    def _accept_batch(self, request: Request, constants: Ints, relations: Ints) -> Queries:
        """A batch of candidates, of which those that break a rule are dropped.

        Each rule looks only at the queries that kept to the rules before it.
        """
        database, pattern, split = self.graph.database, request.pattern, request.split
        arity, most, limit = len(pattern.free), None, None
        if arity > 1:
            most = self.max_answers if self.rules.few_answers else MAX_TUPLES
            limit = most + 1  # one more shows that there are too many
            few = self._few_by_variable(request, constants, relations, most)
            constants, relations = constants[few], relations[few]
        elif split != "train" and request.count is not None and self.rules.few_answers:
            most = self.max_answers
        full = database.answer(pattern, constants, relations, split, limit)
        candidates = constants.astype(np.int32), relations.astype(np.int32)
        queries = Queries(pattern, *candidates, full, Answers.none(len(full), arity))
        keep = full.counts > 0
        if most is not None:
            keep &= full.counts <= most
        queries = queries.select(keep)
        counts = queries.easy.counts
        if split != "train":
            known = database.answer(pattern, queries.constants, queries.relations, _before(split))
            easy, hard = split_answers(queries.easy, known)
            keep = np.ones(len(queries), bool)
            if self.rules.hard_answer:
                keep &= hard.counts > 0
            if self.rules.lost_answer and has_negation(pattern.formula):
                keep &= known.counts > easy.counts
            queries, counts = replace(queries, easy=easy, hard=hard).select(keep), counts[keep]
        return queries.select(self._excluding(request, queries, counts))

    def _few_by_variable(
        self, request: Request, constants: Ints, relations: Ints, most: int
    ) -> Mask:
        """The queries in which each free variable by itself has at most so many entities.

        Others have more tuples, and of these perhaps millions: their entities are found much
        faster.
        """
        few = np.ones(len(constants), bool)
        for variable in request.pattern.free:
            about, rows = request.pattern.about(variable), (constants[few], relations[few])
            few[few] = self.graph.database.answer(about, *rows, request.split).counts <= most
        return few


@dataclass(frozen=True)
class Preset:
    """A protocol by name: what is sampled for a graph, by which sampler, with which rules."""

    name: str
    types: tuple[str, ...]
    requests: Callable[
        [KnowledgeGraph, Mapping[str, Pattern] | None, int | None, Rules], list[Request]
    ]
    sampler: type[Sampler]
    rules: Rules


BETAE_PRESET = Preset("betae", tuple(BETAE), betae_preset, Sampler, Rules())


def sample_all(
    graph: KnowledgeGraph,
    requests: list[Request],
    seed: int = 0,
    listener: Listener = SILENT,
    timeout: float | None = None,
    preset: Preset = BETAE_PRESET,
    rules: Rules | None = None,
) -> Mapping[str, Mapping[str, Queries]]:
    """The queries of all requests, by split and name; without rules, by those of the preset."""
    sampler = preset.sampler(graph, seed, timeout=timeout, rules=rules or preset.rules)
    listener.begin("sampling", sum(map(sampler.size, requests)))
    splits: dict[str, dict[str, Queries]] = {}
    for request in requests:
        try:
            queries = sampler.sample(request, listener)
        except QueryError as error:
            raise error.within(f"{request.split} {request.name}") from error
        splits.setdefault(request.split, {})[request.name] = queries
    return splits


def sample_store(
    graph: KnowledgeGraph | str | Path,
    folder: str | Path,
    requests: list[Request] | None = None,
    seed: int = 0,
    provenance: Mapping[str, Any] | None = None,
    listener: Listener = SILENT,
    *,
    timeout: float | None = None,
    preset: Preset = BETAE_PRESET,
    rules: Rules | None = None,
) -> QueryStore:
    """Sample and write a query store for a graph or its folder.

    Without requests, it has the composition of the preset, scaled to the graph; without rules, it
    has the preset's. timeout is in seconds, for the answers to a batch of queries.
    """
    graph = KnowledgeGraph.of(graph)
    rules = rules or preset.rules
    if requests is None:
        requests = preset.requests(graph, None, None, rules)
    splits = sample_all(graph, requests, seed, listener, timeout, preset, rules)
    if not any(len(queries) for patterns in splits.values() for queries in patterns.values()):
        raise QueryError(f"{graph.folder} has no queries of these types; nothing was written")
    made = {
        "made_by": f"lmpnn-kge {version('lmpnn-kge')}",
        "preset": preset.name,
        "rules": rules.to_json(),
        "seed": seed,
        GRAPH: graph.fingerprint,
    }
    store = QueryStore(graph.name, graph.vocabulary, splits, {**made, **(provenance or {})})
    return write_store(store, folder)


def unseen(
    seen: npt.NDArray[np.uint64], constants: Ints, relations: Ints
) -> tuple[npt.NDArray[np.uint64], Ints]:
    """The hashes of all queries so far, and the new queries in the order in which they came."""
    keys = np.concatenate([seen, _fingerprints(constants, relations)])
    # `first` points behind the hashes that were seen before only if a hash is new.
    keys, first = np.unique(keys, return_index=True)
    return keys, np.sort(first[first >= len(seen)]) - len(seen)


def _fingerprints(constants: Ints, relations: Ints) -> npt.NDArray[np.uint64]:
    """A hash of each query; in the rare case that two queries share it, one of them is dropped."""
    mixed = np.zeros(len(constants), np.uint64)
    for column in (*constants.T, *relations.T):
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _without_negations(pattern: Pattern) -> Pattern | None:
    """The pattern without its negations, restricted to the parts that are connected to `?`.

    None if nothing changes, or if nothing is left of something that is asked for. A part that only
    a negation connects to `?` says nothing about it without the negation.
    """
    formula = pattern.formula
    parts = formula.parts if isinstance(formula, And) else (formula,)
    positive = [part for part in parts if not isinstance(part, Not)]
    connected = connected_to(pattern.free[0], positive)
    if len(positive) == len(parts) or not connected:
        return None
    relaxed = Pattern(conjunction(connected))
    return relaxed if relaxed.free == pattern.free else None


def _before(split: str) -> str:
    """The split whose edges are observed when the queries of a split are asked."""
    return SPLITS[SPLITS.index(split) - 1]


def _total(parts: Iterable[Queries]) -> int:
    return sum(map(len, parts))
