"""Sampling and exact answers on a large graph, against FB15k-237 in the same run.

Both graphs take turns, and CPU time is measured: the ratio hardly depends on what else the machine
does. The large graph has typed relations: the heads and tails of each come from a part of the
entities, by a power law. Arguments set the number of its triples and of the queries to sample:
`python -m tests.benchmarks.bench_large 21000000 100000`. `--only-large` leaves FB15k-237 out.
"""

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.ground import Edges, ground
from lmpnn_kge.queries.sample import Sampler, betae_preset
from lmpnn_kge.query.patterns import BETAE, named_patterns
from tests.conftest import ROOT

from .measure import peak_megabytes

TRIPLES, RELATIONS, QUERIES = 5_000_000, 500, 100_000


def typed_graph(count: int) -> KnowledgeGraph:
    """Random triples, about 4.5 for each entity; a twentieth is valid, and a twentieth is test."""
    draw = np.random.default_rng(0)
    entities = int(count / 4.6)
    names = draw.permutation(entities)
    relation = (RELATIONS * draw.random(count) ** 2).astype(np.int64)
    # A relation of n triples links about n / 3 heads to n / 10 tails; n / 3 is at most E / 4.
    size = np.bincount(relation, minlength=RELATIONS)
    columns = []
    for share in (3, 10):
        width = np.clip(size // share, 1, entities // 4)
        start = (draw.random(RELATIONS) * (entities - width)).astype(np.int64)
        place = (width[relation] * draw.random(count) ** 2).astype(np.int64)
        columns.append(names[start[relation] + place])
    heads, tails = columns
    keys = np.unique((heads * RELATIONS + relation) * entities + tails)
    rest, tails = np.divmod(keys, entities)
    triples = np.stack([*np.divmod(rest, RELATIONS), tails], axis=1)
    level = np.searchsorted([0.9, 0.95], draw.random(len(triples)))
    splits = {name: triples[level == i] for i, name in enumerate(("train", "valid", "test"))}
    ids = [f"e{i}" for i in range(entities)], [f"r{i}" for i in range(RELATIONS)]
    return KnowledgeGraph(Path("typed"), "typed", Vocabulary(*ids), splits)


def loaded(graph: KnowledgeGraph) -> KnowledgeGraph:
    """The graph, with its database at hand."""
    start = time.process_time()
    assert graph.database
    taken = time.process_time() - start
    size = f"{graph.num_entities:,} entities, {len(graph.edges[0]):,} triples"
    print(f"{graph.name}: {size}; loaded in {taken:.1f} s of CPU, {memory()}", flush=True)
    return graph


def memory() -> str:
    return f"peak {peak_megabytes():,.0f} MB"


def report(what: str, counts: dict[str, int], seconds: dict[str, float]) -> None:
    """Queries per second of CPU time, and the ratio to the first graph."""
    rates = {name: counts[name] / seconds[name] for name in counts}
    first, *_ = rates.values()
    text = ", ".join(f"{name} {rate:,.0f}/s ({rate / first:.2f})" for name, rate in rates.items())
    print(f"{what}: {text}; {memory()}", flush=True)


def answering(graphs: dict[str, KnowledgeGraph]) -> None:
    counts, seconds = Counter[str](), Counter[str]()
    edges = {
        name: Edges.of(graph.edges[0], graph.num_entities, graph.num_relations)
        for name, graph in graphs.items()
    }
    for kind in BETAE:
        pattern = named_patterns()[kind]
        for name, graph in graphs.items():
            queries = ground(pattern, edges[name], 10_000, np.random.default_rng(0))
            start = time.process_time()
            graph.database.answer(pattern, *queries)
            seconds[name] += time.process_time() - start
            counts[name] += len(queries[0])
    report("exact answers", counts, seconds)


def sampling(graphs: dict[str, KnowledgeGraph], queries: int) -> None:
    counts, seconds = Counter[str](), Counter[str]()
    samplers = {name: Sampler(graph) for name, graph in graphs.items()}
    types = len(betae_preset(next(iter(graphs.values())), None, 1))
    requests = [betae_preset(graph, None, queries // types) for graph in graphs.values()]
    for request in zip(*requests, strict=True):
        for (name, sampler), wanted in zip(samplers.items(), request, strict=True):
            start = time.process_time()
            counts[name] += len(sampler.sample(wanted))
            seconds[name] += time.process_time() - start
    report(f"sampling {counts}", counts, seconds)


def main() -> None:
    arguments = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    triples, queries = [*arguments, *(TRIPLES, QUERIES)[len(arguments) :]]
    folder = ROOT.parent / "shared" / "fb15k-237" / "dataset"
    graphs = {}
    if folder.is_dir() and "--only-large" not in sys.argv:
        graphs["FB15k-237"] = loaded(KnowledgeGraph.open(folder))
    graphs["large"] = loaded(typed_graph(triples))
    answering(graphs)
    sampling(graphs, queries)


if __name__ == "__main__":
    main()
