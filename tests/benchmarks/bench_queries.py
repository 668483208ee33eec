"""Exact answers and sampling on FB15k-237, against plain Python sets in the same run."""

import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.queries.ground import Edges, ground
from lmpnn_kge.queries.hard import HARD_PRESET, HardSampler, classes_of
from lmpnn_kge.queries.sample import Request, Sampler, betae_preset, sample_all
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.query.patterns import BETAE, named_patterns
from tests import python_sets
from tests.conftest import ROOT

from .measure import peak_megabytes, seconds

QUERIES = 5000


def answering(graph: KnowledgeGraph) -> None:
    edges = python_sets.adjacency(graph)
    both = Edges.of(graph.edges[0], len(graph.entity_ids), graph.num_relations)
    patterns, random = named_patterns(), np.random.default_rng(0)
    total = np.zeros(2)
    for name in BETAE:
        pattern = patterns[name]
        constants, relations = ground(pattern, both, 2 * QUERIES, random)
        constants, relations = constants[:QUERIES], relations[:QUERIES]
        ours = seconds(partial(graph.database.answer, pattern, constants, relations))
        sets = seconds(partial(python_sets.answer, name, constants, relations, edges))
        total += ours, sets
        print(f"{name:4} {len(constants)} queries  {ours:6.3f} s  sets take {sets / ours:4.1f} ×")
    print(f"all  {total[0]:6.3f} s  sets take {total[1] / total[0]:4.1f} ×", flush=True)


def sampling(graph: KnowledgeGraph) -> None:
    start = time.perf_counter()
    splits = sample_all(graph, betae_preset(graph))
    store = QueryStore(graph.name, graph.vocabulary, splits, {})
    with tempfile.TemporaryDirectory() as folder:
        write_store(store, Path(folder) / "store")
        taken = time.perf_counter() - start
        counts = {split: sum(map(len, queries.values())) for split, queries in splits.items()}
        print(f"sampled and written: {counts} in {taken:.0f} s, peak {peak_megabytes():,.0f} MB")
        opened = seconds(lambda: QueryStore.open(Path(folder) / "store"))
        print(f"reopened in {opened:.3f} s")


def hard_sets(graph: KnowledgeGraph) -> None:
    """Pairs of a query and an answer of hard sets, relative to queries of BetaE's protocol."""
    patterns, count = named_patterns(), 500
    betae, hard = Sampler(graph), HardSampler(graph, rules=HARD_PRESET.rules)
    for name in ("2p", "2i", "3in", "4p"):
        request = Request("test", name, patterns[name], count)
        plain = seconds(partial(betae.sample, request)) / count
        pairs = count * classes_of(request.pattern)
        balanced = seconds(partial(hard.sample, request)) / pairs
        print(f"{name:4} {1 / balanced:6,.0f} pairs/s  {plain / balanced:4.1f} × BetaE's queries/s")


def main() -> None:
    folder = ROOT.parent / "shared" / "fb15k-237" / "dataset"
    if not folder.is_dir():
        print(f"{folder} is not there")
        return
    graph = KnowledgeGraph.open(folder)
    answering(graph)
    sampling(graph)
    hard_sets(graph)


if __name__ == "__main__":
    main()
