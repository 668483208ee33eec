"""Search and hybrid against CQD-Beam on the same queries: speed and memory.

Search profits from what real graphs have: rows that many queries share, and tails that fit a
relation. So the queries are drawn from FB15k-237 with LibKGE's ComplEx if it lies beside the tree,
and from the embedded graph of countries and cities otherwise, with a random embedding.
`python -m tests.benchmarks.bench_search nell` measures memory at the size of NELL-995 instead.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from lmpnn_kge import KnowledgeGraph, backbone_class, open_backbone
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.graph.geography import write_geography
from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.methods.cqd import CqdBeam
from lmpnn_kge.methods.method import Method
from lmpnn_kge.methods.rank import BATCH
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.ground import Edges, ground
from lmpnn_kge.query.patterns import BETAE, named_patterns
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.fit import make_search
from lmpnn_kge.search.hybrid import Hybrid
from lmpnn_kge.search.rerank import Reranker
from lmpnn_kge.search.truth import Weights
from lmpnn_kge.search.tune import score_deviation
from lmpnn_kge.settings.files import load_settings
from lmpnn_kge.settings.kinds import CqdSettings, SearchSettings

from ..conftest import ROOT
from .measure import peak_megabytes, query_rates, seconds
from .workload import DIM, EASY, HARD, answers

#: Entities, relations and triples of NELL-995 as in BetaE's benchmark.
NELL = 63_361, 200, 114_213


def workload() -> tuple[Backbone, KnowledgeGraph]:
    """An embedding and its graph."""
    folder = ROOT.parent / "shared" / "fb15k-237"
    if folder.is_dir():
        graph = KnowledgeGraph.open(folder / "dataset")
        table = open_backbone(folder / "checkpoints" / "complex.pt", dataset=folder / "dataset")
        return table, graph
    print("FB15k-237 is not there; the graph is that of the demo, and the embedding is random")
    with TemporaryDirectory() as place:
        graph = KnowledgeGraph.open(write_geography(Path(place) / "geography"))
        for split in ("train", "valid", "test"):
            graph.triples(split)  # read while the folder is there
        names = graph.vocabulary
        table = backbone_class("complex").random(
            names.num_entities,
            names.num_relations,
            DIM,
            entity_ids=names.entity_ids,
            relation_ids=names.relation_ids,
        )
        return table, graph


def nell() -> tuple[Backbone, Triples]:
    """A random embedding and random edges of the size of NELL-995."""
    entities, relations, count = NELL
    draw = np.random.default_rng(0)
    ends = (entities * draw.random((count, 2)) ** 3).astype(np.int64)
    names = (relations * draw.random(count) ** 2).astype(np.int64)
    triples = np.stack([ends[:, 0], names, ends[:, 1]], 1)
    return backbone_class("complex").random(entities, relations, DIM), triples


def drawn_queries(triples: Triples, table: Backbone | Vocabulary, count: int) -> dict[str, Queries]:
    """Queries of each type that have an answer, with made-up answers to rank."""
    edges = Edges.of(triples, table.num_entities, table.num_relations)
    draw, found = np.random.default_rng(0), {}
    for name in BETAE:
        pattern = named_patterns()[name]
        columns = [ids[:count] for ids in ground(pattern, edges, 3 * count, draw)]
        size = len(columns[0])
        easy, hard = (answers(size, mean, table.num_entities, draw) for mean in (EASY, HARD))
        found[name] = Queries(pattern, *(ids.astype(np.int32) for ids in columns), easy, hard)
    return found


def main() -> None:
    is_nell = "nell" in sys.argv
    if is_nell:
        table, triples = nell()
    else:
        table, graph = workload()
        triples = graph.vocabulary.rows_in(table.vocabulary).of(graph.triples("train"))
    facts = Facts.of(triples, table.num_entities, table.num_relations)
    settings = load_settings(SearchSettings, ["default"])
    weights = Weights.uniform(0.7 / score_deviation(table, facts), -2.0, table.num_relations)
    search = make_search(table, facts, settings, weights)
    reranker = Reranker(table.num_relations)
    methods: dict[str, Method] = {
        "search": search,
        "hybrid": Hybrid(make_search(table, facts, settings, weights), reranker),
    }
    if not is_nell:
        methods["CQD-Beam"] = CqdBeam.of(table, load_settings(CqdSettings, ["default"]))
    found = drawn_queries(triples, table, 64 if is_nell else BATCH)
    rates = query_rates(methods, found)
    if not is_nell:
        print(f"search is {rates['search'] / rates['CQD-Beam']:,.1f} × as fast as CQD-Beam")
    keys, width = facts.keys[:256], 2 * table.num_relations
    product = seconds(lambda: table.entities[:256] @ table.entities.T)
    row = seconds(lambda: search.solver.truth.rows(keys // width, keys % width))
    print(f"a row of truths takes {row / product:.1f} × as long as its matrix product")
    print(f"peak memory {peak_megabytes():,.0f} MB")


if __name__ == "__main__":
    with torch.no_grad():
        main()
