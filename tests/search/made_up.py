"""A made-up world for what is fitted: embeddings, a graph that follows them, and its queries."""

from dataclasses import dataclass

import numpy as np
import torch

from lmpnn_kge import backbone_class
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.sample import Request, sample_store
from lmpnn_kge.query.patterns import named_patterns
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.settings.files import DEFAULT, load_settings
from lmpnn_kge.settings.kinds import SearchSettings

E, R = 60, 3


@dataclass(frozen=True)
class World:
    backbone: Backbone
    graph: KnowledgeGraph
    facts: Facts
    queries: dict[str, Queries]  # of valid


def settings(**changes) -> SearchSettings:
    return load_settings(SearchSettings, [DEFAULT], changes)


def make_world(folder, types=("1p", "2p", "2i", "2u", "2in"), count=40) -> World:
    """Each head has the tails with the best scores; some edges are held out."""
    backbone = backbone_class("complex").random(E, R, 16)
    random = torch.Generator().manual_seed(1)
    rows = [backbone.score_tails(range(E), [r] * E) for r in range(R)]
    noisy = [scores + 2 * torch.randn(scores.shape, generator=random) for scores in rows]
    triples = np.array(
        [
            (head, relation, tail)
            for relation, scores in enumerate(noisy)
            for head, tails in enumerate(scores.topk(4).indices.tolist())
            for tail in tails
        ]
    )
    order = np.random.default_rng(0).permutation(len(triples))
    third = len(triples) // 3
    splits = {
        "valid": triples[order[:third]],
        "test": triples[order[third : third + 50]],
        "train": triples[order[third + 50 :]],
    }
    names = Vocabulary([f"e{row}" for row in range(E)], [f"r{row}" for row in range(R)])
    graph = KnowledgeGraph(folder, "made-up", names, splits)
    patterns = named_patterns()
    requests = [Request("valid", name, patterns[name], count) for name in types]
    store = sample_store(graph, folder / "queries", requests)
    ranked = {name: group.ranked for name, group in store.queries("valid").items()}
    return World(backbone, graph, Facts.of(splits["train"], E, R), ranked)


def flat_backbone() -> Backbone:
    """An embedding that gives all edges the same score."""
    return backbone_class("distmult").from_tensors(
        torch.zeros(E, 4), torch.zeros(R, 4), reciprocal=False
    )
