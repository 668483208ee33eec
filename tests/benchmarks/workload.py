"""Random queries of the size and mix of BetaE's FB15k-237, and a random backbone for them."""

import numpy as np

from lmpnn_kge import backbone_class
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.sample import BETAE_POSITIVE, BETAE_TRAIN
from lmpnn_kge.query.patterns import BETAE, named_patterns

ENTITIES, RELATIONS, DIM = 14_541, 237, 128

#: Easy and hard answers of an evaluation query, on average, and as many hard ones as queries may
#: have that are sampled with up to 100 of them.
EASY, HARD, MANY_HARD = 25, 3.5, 35


def backbone(entities: int = ENTITIES, dim: int = DIM, relations: int = RELATIONS) -> Backbone:
    return backbone_class("complex").random(entities, relations, dim)


def training_queries(
    per_type: int, entities: int = ENTITIES, relations: int = RELATIONS
) -> dict[str, Queries]:
    """Queries: `per_type` of each positive type and a tenth of that of each negated one."""
    counts = {name: per_type // (1 if name in BETAE_POSITIVE else 10) for name in BETAE_TRAIN}
    return {name: queries(name, n, 1, 0, entities, relations) for name, n in counts.items()}


def evaluation_queries(
    per_type: int, entities: int = ENTITIES, relations: int = RELATIONS, hard: float = HARD
) -> dict[str, Queries]:
    """Queries: `per_type` of each of the 14 types, and four times as many of 1p."""
    counts = {name: per_type * (4 if name == "1p" else 1) for name in BETAE}
    return {name: queries(name, n, EASY, hard, entities, relations) for name, n in counts.items()}


def queries(
    name: str, count: int, easy: float, hard: float, entities: int, relations: int
) -> Queries:
    pattern, draw = named_patterns()[name], np.random.default_rng(0)
    return Queries(
        pattern,
        draw.integers(entities, size=(count, len(pattern.constants)), dtype=np.int32),
        draw.integers(2 * relations, size=(count, len(pattern.relations)), dtype=np.int32),
        answers(count, easy, entities, draw),
        answers(count, hard, entities, draw),
    )


def answers(count: int, mean: float, entities: int, draw: np.random.Generator) -> Answers:
    """At least one each, and a long tail, as in a real graph."""
    counts = draw.geometric(1 / mean, count) if mean else np.zeros(count, np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Answers(offsets, draw.integers(entities, size=offsets[-1], dtype=np.int32))
