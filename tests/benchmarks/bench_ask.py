"""Questions one by one with reasons, and many at once: what `ask --explain` takes after loading.

The graph and the embedding are those of `bench_search`. Times are of the process, in milliseconds
of one core, so that other work on the machine does not count.
"""

import time
from statistics import mean, median

import numpy as np
import torch

from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.formula import Formula
from lmpnn_kge.runs.asking import Asking
from lmpnn_kge.runs.explaining import Explaining
from lmpnn_kge.runs.fitting import FittedMethod
from lmpnn_kge.runs.knowledge import Knowledge
from lmpnn_kge.search.edges import EdgeProbability
from lmpnn_kge.search.fit import make_search
from lmpnn_kge.search.hybrid import Hybrid
from lmpnn_kge.search.rerank import Reranker
from lmpnn_kge.search.truth import Weights
from lmpnn_kge.search.tune import score_deviation
from lmpnn_kge.settings.files import load_settings
from lmpnn_kge.settings.kinds import SearchSettings

from .bench_search import drawn_queries, workload

#: Questions of each type that are asked one by one, and all that are asked at once.
FEW, MANY = 5, 1000


def asking() -> Asking:
    """Hybrid with an order that is not learnt, which takes as long as one that is."""
    table, graph = workload()
    names = table.vocabulary.labelled_by(graph.vocabulary)
    knowledge = Knowledge(graph, names, table.entities.device)
    facts = knowledge.facts
    weights = Weights.uniform(0.7 / score_deviation(table, facts), -2.0, table.num_relations)
    search = make_search(table, facts, load_settings(SearchSettings, ["default"]), weights)
    edges = EdgeProbability.fit(table, facts, knowledge.triples("valid"))
    hybrid = FittedMethod(Hybrid(search, Reranker(table.num_relations)))
    explaining = Explaining(names, knowledge, search.solver, edges)
    return Asking(names, hybrid, knowledge, explaining=explaining)


def formulas(queries: Queries, asked: Asking, count: int) -> list[Formula]:
    names = asked.vocabulary
    half = names.num_relations
    rows = np.linspace(0, len(queries) - 1, count).astype(int)
    return [
        queries.pattern.fill(
            [names.entity_ids[entity] for entity in queries.constants[row]],
            [
                (names.relation_ids[edge % half], bool(edge >= half))
                for edge in queries.relations[row]
            ],
        )
        for row in rows
    ]


def milliseconds(asked: Asking, questions: list[Formula]) -> float:
    start = time.process_time()
    for result in asked.ask(questions):
        if isinstance(result, Exception):
            raise result
    return 1000 * (time.process_time() - start)


def main() -> None:
    asked = asking()
    drawn = drawn_queries(asked.knowledge.triples("train"), asked.vocabulary, 256)
    asked.ask(formulas(drawn["1p"], asked, 1))
    every: list[float] = []
    for name, queries in drawn.items():
        times = [milliseconds(asked, [question]) for question in formulas(queries, asked, FEW)]
        every += times
        print(f"{name:<4} median {median(times):6.0f} ms, slowest {max(times):6.0f}", flush=True)
    print(f"all  median {median(every):6.0f} ms, mean {mean(every):.0f}, slowest {max(every):.0f}")
    per_type = -(-MANY // len(drawn))
    many = [question for group in drawn.values() for question in formulas(group, asked, per_type)]
    print(f"{MANY:,} at once: {milliseconds(asked, many[:MANY]) / 1000:.1f} s")


if __name__ == "__main__":
    with torch.no_grad():
        main()
